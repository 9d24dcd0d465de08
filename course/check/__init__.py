"""Checks for the exercises: ``check.scaled_scores(scaled_scores)`` in a notebook's cell."""

from course.check.attention_outputs import chunked_attention, grouped_query_attention
from course.check.attention_scores import antisymmetric_share, masked_softmax, scaled_scores

__all__ = [
    "antisymmetric_share",
    "chunked_attention",
    "grouped_query_attention",
    "masked_softmax",
    "scaled_scores",
]
