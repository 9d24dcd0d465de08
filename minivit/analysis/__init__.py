"""Questions put to a model, one file for each."""

from minivit.analysis.spectra import Spectrum, spectrum

__all__ = ["Spectrum", "spectrum"]
