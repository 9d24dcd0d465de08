"""Instruments to look inside a model, one file for each question."""

from minivit.analysis.bands import band_noise, band_pass, high_pass, low_pass
from minivit.analysis.cue_conflict import CueConflict, cue_conflict
from minivit.analysis.curvature import Curvature, Maxima, batch_maxima, curvature
from minivit.analysis.deletion import DeletionCurves, deletion_curves
from minivit.analysis.density import Density, Estimate, density
from minivit.analysis.dictionary import Dictionary, Fit, learn_dictionary
from minivit.analysis.distance import AttentionDistance, attention_distance
from minivit.analysis.ensembles import Ensemble, ensemble, position_ensembles
from minivit.analysis.filters import (
    Components,
    FilterSpectra,
    cosine_basis,
    cut_patches,
    filter_spectra,
    first_filters,
    principal_components,
    subspace_overlap,
)
from minivit.analysis.frequency import LogAmplitude, log_amplitude
from minivit.analysis.frequency_by_layer import (
    Addition,
    Passage,
    layer_frequencies,
    stream_frequencies,
)
from minivit.analysis.frequency_response import (
    FrequencyResponse,
    attention_response,
    frequency_response,
)
from minivit.analysis.importance import (
    Importance,
    block_importance,
    branch_importance,
    head_importance,
)
from minivit.analysis.landscape import Landscape, filter_normalised, landscape
from minivit.analysis.lens import LogitLens, logit_lens
from minivit.analysis.localisation import Localisation, localisation, readable
from minivit.analysis.norms import TokenNorms, token_norms
from minivit.analysis.positions import (
    PositionSimilarity,
    place_recovery,
    position_similarity,
    position_table,
)
from minivit.analysis.probes import Probe, probe, probes
from minivit.analysis.ratios import BranchRatios, branch_ratios
from minivit.analysis.receptive_field import ReceptiveField, receptive_field
from minivit.analysis.relevance import Relevance, relevance
from minivit.analysis.ridge import Ridge, ridge
from minivit.analysis.rollout import Rollout, rollout
from minivit.analysis.similarity import CKA, Similarity, cka, linear_cka
from minivit.analysis.smoothing import (
    between_patches,
    box_blur,
    gaussian_smoothing,
    mean_attention,
)
from minivit.analysis.spectra import Spectrum, spectrum
from minivit.analysis.tokens import patch_means, saliency, token_ablation
from minivit.analysis.variance import (
    BranchVariance,
    Variance,
    branch_variance,
    feature_variance,
)
from minivit.analysis.weights import WeightLoss

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
