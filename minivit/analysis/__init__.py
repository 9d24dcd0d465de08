"""Instruments to look inside a model, one file for each question."""

from minivit.analysis.deletion import DeletionCurves, deletion_curves
from minivit.analysis.dictionary import Dictionary, Fit, learn_dictionary
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
from minivit.analysis.importance import (
    Importance,
    block_importance,
    branch_importance,
    head_importance,
)
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
from minivit.analysis.spectra import Spectrum, spectrum
from minivit.analysis.tokens import patch_means, saliency, token_ablation

__all__ = [
    "AttentionDistance",
    "BranchRatios",
    "CKA",
    "Components",
    "DeletionCurves",
    "Dictionary",
    "FilterSpectra",
    "Fit",
    "Importance",
    "Localisation",
    "LogitLens",
    "PositionSimilarity",
    "Probe",
    "ReceptiveField",
    "Relevance",
    "Ridge",
    "Rollout",
    "Similarity",
    "Spectrum",
    "TokenNorms",
    "attention_distance",
    "block_importance",
    "branch_importance",
    "branch_ratios",
    "cka",
    "cosine_basis",
    "cut_patches",
    "deletion_curves",
    "filter_spectra",
    "first_filters",
    "head_importance",
    "learn_dictionary",
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
    "relevance",
    "ridge",
    "rollout",
    "saliency",
    "spectrum",
    "subspace_overlap",
    "token_ablation",
    "token_norms",
]
