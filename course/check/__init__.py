"""Checks for the exercises: ``check.scaled_scores(scaled_scores)`` in a notebook's cell."""

from course.check.attention_outputs import chunked_attention, grouped_query_attention
from course.check.attention_reach import effective_keys, mean_offset
from course.check.attention_scores import antisymmetric_share, masked_softmax, scaled_scores
from course.check.attribution import integrated_gradients, relevance
from course.check.block_parts import block_without, unused_numbers
from course.check.convolutions import (
    circular_by_fourier,
    convolution_by_attention,
    merged_kernel,
)
from course.check.descent import largest_value, recovered_fast, steps_for
from course.check.encoder_parts import channel_norm, drop_path, logit_shares, ordered_block
from course.check.filter_pictures import matched_similarity, on_one_scale, share_in_span
from course.check.inversion_methods import gauss_newton_step, lbfgs_direction
from course.check.inversion_steps import allowed_error, distance_step, left_after
from course.check.layer_inverses import (
    asymptotic_rate,
    build_collision,
    held_attention,
    queries_from_scores,
    undo_residual,
)
from course.check.mixer_parts import distance_from_alike, spatial_gate
from course.check.mixer_tables import convolution_table, resized_mixing
from course.check.norm_derivatives import forgotten, norm_pullback
from course.check.norm_inverses import patches_behind_rms, rms_input, with_statistics
from course.check.patch_estimates import convolution_values, estimate_from_noisy
from course.check.patch_inverse import components_needed, forgotten_pattern, noise_gain
from course.check.patch_order import convolution_weight, merged_tokens, patch_at
from course.check.patch_pictures import denoised, padded_patches
from course.check.picture_steps import expected_change, scores_on_the_way, step_in_pixels
from course.check.position_offsets import cosine_by_offset
from course.check.positions_scores import relative_bias, rotary_2d
from course.check.positions_tables import add_positions, move_by, resample_linear
from course.check.receptive_fields import first_and_last, layers_needed
from course.check.robust_pictures import robust_pictures
from course.check.similarities import feature_cka, place_error
from course.check.training_losses import mixed_loss, sharp_gradient
from course.check.training_scores import best_temperature, paired_interval
from course.check.transplant_parts import main_effects, stitched
from course.check.transplant_speeds import by_weights, partial_correlation, steps_needed
from course.check.whole_vit import logits_from_file
from course.check.without_refitting import left_out, streamed_cka
from minivit.hub.import_torchvision import mend

mend()  # every chapter imports this first, and some torchvision after it

__all__ = [
    "add_positions",
    "allowed_error",
    "antisymmetric_share",
    "asymptotic_rate",
    "best_temperature",
    "block_without",
    "build_collision",
    "by_weights",
    "channel_norm",
    "chunked_attention",
    "circular_by_fourier",
    "components_needed",
    "convolution_by_attention",
    "convolution_table",
    "convolution_values",
    "convolution_weight",
    "cosine_by_offset",
    "denoised",
    "distance_from_alike",
    "distance_step",
    "drop_path",
    "effective_keys",
    "estimate_from_noisy",
    "expected_change",
    "feature_cka",
    "first_and_last",
    "forgotten",
    "forgotten_pattern",
    "gauss_newton_step",
    "grouped_query_attention",
    "held_attention",
    "integrated_gradients",
    "largest_value",
    "layers_needed",
    "lbfgs_direction",
    "left_after",
    "left_out",
    "logit_shares",
    "logits_from_file",
    "main_effects",
    "masked_softmax",
    "matched_similarity",
    "mean_offset",
    "merged_kernel",
    "merged_tokens",
    "mixed_loss",
    "move_by",
    "noise_gain",
    "norm_pullback",
    "on_one_scale",
    "ordered_block",
    "padded_patches",
    "paired_interval",
    "partial_correlation",
    "patch_at",
    "patches_behind_rms",
    "place_error",
    "queries_from_scores",
    "recovered_fast",
    "relative_bias",
    "relevance",
    "resample_linear",
    "resized_mixing",
    "rms_input",
    "robust_pictures",
    "rotary_2d",
    "scaled_scores",
    "scores_on_the_way",
    "share_in_span",
    "sharp_gradient",
    "spatial_gate",
    "step_in_pixels",
    "steps_for",
    "steps_needed",
    "stitched",
    "streamed_cka",
    "undo_residual",
    "unused_numbers",
    "with_statistics",
]
