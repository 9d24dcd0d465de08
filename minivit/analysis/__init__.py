"""Instruments to look inside a model, one file for each question."""

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
from minivit.analysis.importance import Importance, branch_importance, head_importance
from minivit.analysis.lens import LogitLens, logit_lens
from minivit.analysis.localisation import Localisation, localisation, readable
from minivit.analysis.positions import (
    PositionSimilarity,
    place_recovery,
    position_similarity,
    position_table,
)
from minivit.analysis.probes import Probe, probe, probes
from minivit.analysis.ratios import BranchRatios, branch_ratios
from minivit.analysis.receptive_field import ReceptiveField, receptive_field
from minivit.analysis.ridge import Ridge, ridge
from minivit.analysis.rollout import Rollout, rollout
from minivit.analysis.similarity import CKA, Similarity, cka, linear_cka
from minivit.analysis.smoothing import (
    between_patches,
    box_blur,
    gaussian_smoothing,
    mean_attention,
    width_for,
)
from minivit.analysis.spectra import Spectrum, spectrum
from minivit.analysis.tokens import patch_means, saliency, token_ablation
from minivit.analysis.variance import (
    BranchVariance,
    Variance,
    branch_variance,
    feature_variance,
)

__all__ = [
    "AttentionDistance",
    "BranchRatios",
    "BranchVariance",
    "CKA",
    "Components",
    "Ensemble",
    "FilterSpectra",
    "Importance",
    "Localisation",
    "LogitLens",
    "PositionSimilarity",
    "Probe",
    "ReceptiveField",
    "Ridge",
    "Rollout",
    "Similarity",
    "Spectrum",
    "Variance",
    "attention_distance",
    "between_patches",
    "box_blur",
    "branch_importance",
    "branch_ratios",
    "branch_variance",
    "cka",
    "cosine_basis",
    "cut_patches",
    "ensemble",
    "feature_variance",
    "filter_spectra",
    "first_filters",
    "gaussian_smoothing",
    "head_importance",
    "linear_cka",
    "localisation",
    "logit_lens",
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
    "ridge",
    "rollout",
    "saliency",
    "spectrum",
    "subspace_overlap",
    "token_ablation",
    "width_for",
]
