"""Checks for the exercises: ``check.scaled_scores(scaled_scores)`` in a notebook's cell."""

from course.check.attention_outputs import chunked_attention, grouped_query_attention
from course.check.attention_scores import antisymmetric_share, masked_softmax, scaled_scores
from course.check.block_parts import block_without, unused_numbers
from course.check.convolutions import (
    circular_by_fourier,
    convolution_by_attention,
    merged_kernel,
)
from course.check.descent import largest_value, recovered_fast, steps_for
from course.check.encoder_parts import channel_norm, drop_path, logit_shares, ordered_block
from course.check.mixer_parts import distance_from_alike, spatial_gate
from course.check.mixer_tables import convolution_table, resized_mixing
from course.check.norm_derivatives import forgotten, norm_pullback
from course.check.norm_inverses import patches_behind_rms, rms_input, with_statistics
from course.check.patch_estimates import convolution_values, estimate_from_noisy
from course.check.patch_inverse import components_needed, forgotten_pattern, noise_gain
from course.check.patch_order import convolution_weight, merged_tokens, patch_at
from course.check.patch_pictures import denoised, padded_patches
from course.check.positions_scores import relative_bias, rotary_2d
from course.check.positions_tables import add_positions, move_by, resample_linear
from course.check.receptive_fields import first_and_last, layers_needed
from course.check.whole_vit import logits_from_file

__all__ = [
    "add_positions",
    "antisymmetric_share",
    "block_without",
    "channel_norm",
    "chunked_attention",
    "circular_by_fourier",
    "components_needed",
    "convolution_by_attention",
    "convolution_table",
    "convolution_values",
    "convolution_weight",
    "denoised",
    "distance_from_alike",
    "drop_path",
    "estimate_from_noisy",
    "first_and_last",
    "forgotten",
    "forgotten_pattern",
    "grouped_query_attention",
    "largest_value",
    "layers_needed",
    "logit_shares",
    "logits_from_file",
    "masked_softmax",
    "merged_kernel",
    "merged_tokens",
    "move_by",
    "noise_gain",
    "norm_pullback",
    "ordered_block",
    "padded_patches",
    "patch_at",
    "patches_behind_rms",
    "recovered_fast",
    "relative_bias",
    "resample_linear",
    "resized_mixing",
    "rms_input",
    "rotary_2d",
    "scaled_scores",
    "spatial_gate",
    "steps_for",
    "unused_numbers",
    "with_statistics",
]
