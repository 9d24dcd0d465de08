"""Checks for the exercises: ``check.scaled_scores(scaled_scores)`` in a notebook's cell."""

from course.check.attention_outputs import chunked_attention, grouped_query_attention
from course.check.attention_scores import antisymmetric_share, masked_softmax, scaled_scores
from course.check.patch_order import convolution_weight, merged_tokens, patch_at
from course.check.patch_pictures import denoised, padded_patches

__all__ = [
    "antisymmetric_share",
    "chunked_attention",
    "convolution_weight",
    "denoised",
    "grouped_query_attention",
    "masked_softmax",
    "merged_tokens",
    "padded_patches",
    "patch_at",
    "scaled_scores",
]
