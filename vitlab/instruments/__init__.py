"""Instruments to look inside a model, one file for each question.

A new instrument is its file and its names here, which are those of :mod:`vitlab` too.
"""
# ruff: noqa: F401

from vitlab.instruments.cue_conflict import CueConflict, cue_conflict
from vitlab.instruments.curvature import (
    Curvature,
    Landscape,
    Maxima,
    batch_maxima,
    curvature,
    filter_normalised,
    landscape,
)
from vitlab.instruments.deletion import (
    DeletionCurves,
    deletion_curves,
    patch_means,
    saliency,
    token_ablation,
)
from vitlab.instruments.density import Density, Estimate, density
from vitlab.instruments.dictionary import Dictionary, Fit, learn_dictionary
from vitlab.instruments.distance import AttentionDistance, attention_distance
from vitlab.instruments.ensembles import Ensemble, ensemble, position_ensembles
from vitlab.instruments.filters import (
    Components,
    FilterSpectra,
    cosine_basis,
    cut_patches,
    filter_spectra,
    first_filters,
    principal_components,
    subspace_overlap,
)
from vitlab.instruments.frequency import (
    LogAmplitude,
    band_noise,
    band_pass,
    high_pass,
    log_amplitude,
    low_pass,
)
from vitlab.instruments.frequency_by_layer import (
    Addition,
    Passage,
    layer_frequencies,
    stream_frequencies,
)
from vitlab.instruments.frequency_response import (
    FrequencyResponse,
    attention_response,
    frequency_response,
)
from vitlab.instruments.importance import Importance, branch_importance, head_importance
from vitlab.instruments.lens import LogitLens, logit_lens
from vitlab.instruments.localisation import Localisation, localisation, readable
from vitlab.instruments.norms import TokenNorms, token_norms
from vitlab.instruments.positions import (
    PositionSimilarity,
    place_recovery,
    position_similarity,
    position_table,
)
from vitlab.instruments.probes import Probe, Ridge, probe, probes, ridge
from vitlab.instruments.ratios import BranchRatios, branch_ratios
from vitlab.instruments.receptive_field import ReceptiveField, receptive_field
from vitlab.instruments.rollout import Relevance, Rollout, relevance, rollout
from vitlab.instruments.similarity import CKA, Similarity, cka, linear_cka
from vitlab.instruments.smoothing import (
    between_patches,
    box_blur,
    gaussian_smoothing,
    mean_attention,
)
from vitlab.instruments.spectra import Spectrum, spectrum
from vitlab.instruments.variance import BranchVariance, Variance, branch_variance, feature_variance
from vitlab.instruments.weights import WeightLoss

__all__ = [name for name, value in globals().items() if callable(value)]  # and no module
