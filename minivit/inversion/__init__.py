"""From a representation back to what it represents."""

from minivit.inversion import exact
from minivit.inversion.generate import Generated, generate
from minivit.inversion.recognition import Recognition, recognise

__all__ = ["Generated", "Recognition", "exact", "generate", "recognise"]
