"""Instruments to look inside a model, one file for each question."""

from minivit.analysis.curvature import Curvature, Maxima, batch_maxima, curvature
from minivit.analysis.density import Density, Estimate, density
from minivit.analysis.distance import AttentionDistance, attention_distance
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
from minivit.analysis.landscape import Landscape, filter_normalised, landscape
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
from minivit.analysis.spectra import Spectrum, spectrum
from minivit.analysis.tokens import patch_means, saliency, token_ablation
from minivit.analysis.weights import WeightLoss

__all__ = [
    "AttentionDistance",
    "BranchRatios",
    "CKA",
    "Components",
    "Curvature",
    "Density",
    "Estimate",
    "FilterSpectra",
    "Importance",
    "Landscape",
    "Localisation",
    "LogitLens",
    "Maxima",
    "PositionSimilarity",
    "Probe",
    "ReceptiveField",
    "Ridge",
    "Rollout",
    "Similarity",
    "Spectrum",
    "WeightLoss",
    "attention_distance",
    "batch_maxima",
    "branch_importance",
    "branch_ratios",
    "cka",
    "cosine_basis",
    "curvature",
    "cut_patches",
    "density",
    "filter_normalised",
    "filter_spectra",
    "first_filters",
    "head_importance",
    "landscape",
    "linear_cka",
    "localisation",
    "logit_lens",
    "patch_means",
    "place_recovery",
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
]
