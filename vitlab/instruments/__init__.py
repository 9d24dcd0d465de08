"""Instruments to look inside a model, one file for each question.

A new instrument is its file and its name here, which is one of :mod:`vitlab` too.
"""
# ruff: noqa: F401

from vitlab import boundary
from vitlab.instruments.blocks import logit_lens, token_norms
from vitlab.instruments.curvature import batch_maxima, curvature, filter_normalised, landscape
from vitlab.instruments.deletion import deletion_curves, patch_means, saliency, token_ablation
from vitlab.instruments.dictionary import learn_dictionary
from vitlab.instruments.distance import attention_distance, receptive_field
from vitlab.instruments.ensembles import cue_conflict, ensemble, position_ensembles
from vitlab.instruments.filters import (
    cosine_basis,
    cut_patches,
    filter_spectra,
    first_filters,
    principal_components,
    subspace_overlap,
)
from vitlab.instruments.frequency import band_noise, band_pass, high_pass, log_amplitude, low_pass
from vitlab.instruments.importance import Importance, branch_importance, head_importance
from vitlab.instruments.localisation import Localisation, localisation, readable
from vitlab.instruments.positions import place_recovery, position_similarity, position_table
from vitlab.instruments.probes import Ridge, probe, probes, ridge
from vitlab.instruments.residuals import branch_ratios
from vitlab.instruments.rollout import relevance, rollout
from vitlab.instruments.similarity import CKA, cka, linear_cka
from vitlab.instruments.smoothing import (
    attention_response,
    between_patches,
    frequency_response,
    gaussian_smoothing,
    mean_attention,
)
from vitlab.instruments.spectra import density, spectrum
from vitlab.instruments.variance import (
    branch_variance,
    feature_variance,
    layer_frequencies,
    stream_frequencies,
)
from vitlab.instruments.weights import WeightLoss

globals().update(boundary.guarded(globals()))
__all__ = [name for name, value in globals().items() if callable(value)]  # and no module
