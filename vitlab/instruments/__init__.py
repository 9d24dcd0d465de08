"""Instruments to look inside a model, one file for each question."""

from vitlab.instruments.bands import band_noise, band_pass, high_pass, low_pass
from vitlab.instruments.cue_conflict import CueConflict, cue_conflict
from vitlab.instruments.curvature import Curvature, Maxima, batch_maxima, curvature
from vitlab.instruments.deletion import DeletionCurves, deletion_curves
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
from vitlab.instruments.frequency import LogAmplitude, log_amplitude
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
from vitlab.instruments.importance import (
    Importance,
    block_importance,
    branch_importance,
    head_importance,
)
from vitlab.instruments.landscape import Landscape, filter_normalised, landscape
from vitlab.instruments.lens import LogitLens, logit_lens
from vitlab.instruments.localisation import Localisation, localisation, readable
from vitlab.instruments.norms import TokenNorms, token_norms
from vitlab.instruments.positions import (
    PositionSimilarity,
    place_recovery,
    position_similarity,
    position_table,
)
from vitlab.instruments.probes import Probe, probe, probes
from vitlab.instruments.ratios import BranchRatios, branch_ratios
from vitlab.instruments.receptive_field import ReceptiveField, receptive_field
from vitlab.instruments.relevance import Relevance, relevance
from vitlab.instruments.ridge import Ridge, ridge
from vitlab.instruments.rollout import Rollout, rollout
from vitlab.instruments.similarity import CKA, Similarity, cka, linear_cka
from vitlab.instruments.smoothing import (
    between_patches,
    box_blur,
    gaussian_smoothing,
    mean_attention,
)
from vitlab.instruments.spectra import Spectrum, spectrum
from vitlab.instruments.tokens import patch_means, saliency, token_ablation
from vitlab.instruments.variance import BranchVariance, Variance, branch_variance, feature_variance
from vitlab.instruments.weights import WeightLoss

__all__ = [
    "CKA",
    "Addition",
    "AttentionDistance",
    "BranchRatios",
    "BranchVariance",
    "Components",
    "CueConflict",
    "Curvature",
    "DeletionCurves",
    "Density",
    "Dictionary",
    "Ensemble",
    "Estimate",
    "FilterSpectra",
    "Fit",
    "FrequencyResponse",
    "Importance",
    "Landscape",
    "Localisation",
    "LogAmplitude",
    "LogitLens",
    "Maxima",
    "Passage",
    "PositionSimilarity",
    "Probe",
    "ReceptiveField",
    "Relevance",
    "Ridge",
    "Rollout",
    "Similarity",
    "Spectrum",
    "TokenNorms",
    "Variance",
    "WeightLoss",
    "attention_distance",
    "attention_distance",
    "attention_response",
    "band_noise",
    "band_pass",
    "batch_maxima",
    "between_patches",
    "block_importance",
    "box_blur",
    "branch_importance",
    "branch_ratios",
    "branch_variance",
    "cka",
    "cosine_basis",
    "cue_conflict",
    "curvature",
    "cut_patches",
    "deletion_curves",
    "density",
    "ensemble",
    "feature_variance",
    "filter_normalised",
    "filter_spectra",
    "first_filters",
    "frequency_response",
    "gaussian_smoothing",
    "head_importance",
    "high_pass",
    "landscape",
    "layer_frequencies",
    "learn_dictionary",
    "linear_cka",
    "localisation",
    "log_amplitude",
    "logit_lens",
    "low_pass",
    "mean_attention",
    "patch_means",
    "place_recovery",
    "position_ensembles",
    "position_similarity",
    "position_table",
    "principal_components",
    "probe",
    "probes",
    "readable",
    "receptive_field",
    "relevance",
    "ridge",
    "rollout",
    "saliency",
    "spectrum",
    "stream_frequencies",
    "subspace_overlap",
    "token_ablation",
    "token_norms",
]
