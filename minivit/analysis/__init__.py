"""Questions put to a model, one file for each."""

from minivit.analysis.distance import AttentionDistance, attention_distance
from minivit.analysis.receptive_field import ReceptiveField, receptive_field
from minivit.analysis.rollout import Rollout, rollout
from minivit.analysis.spectra import Spectrum, spectrum

__all__ = [
    "AttentionDistance",
    "ReceptiveField",
    "Rollout",
    "Spectrum",
    "attention_distance",
    "receptive_field",
    "rollout",
    "spectrum",
]
