"""Questions put to a model, one file for each."""

from minivit.analysis.distance import AttentionDistance, attention_distance
from minivit.analysis.spectra import Spectrum, spectrum

__all__ = ["AttentionDistance", "Spectrum", "attention_distance", "spectrum"]
