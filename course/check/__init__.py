"""Checks for the exercises: ``check.scaled_scores(scaled_scores)`` in a notebook's cell."""

from course.check.attention_outputs import chunked_attention, multi_head_attention
from course.check.attention_scores import antisymmetric_share, masked_softmax, scaled_scores

__all__ = [
    "antisymmetric_share",
    "chunked_attention",
    "masked_softmax",
    "multi_head_attention",
    "scaled_scores",
]
