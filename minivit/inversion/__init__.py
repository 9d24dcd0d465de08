"""From a representation back to what it represents."""

from minivit.inversion import exact
from minivit.inversion.criterion import Diverged
from minivit.inversion.generate import Generated, generate
from minivit.inversion.optimise import invert
from minivit.inversion.recognition import Recognition, recognise
from minivit.inversion.result import Inversion
from minivit.inversion.unwind import Stage, Unwound, unwind

__all__ = [
    "Diverged",
    "Generated",
    "Inversion",
    "Recognition",
    "Stage",
    "Unwound",
    "exact",
    "generate",
    "invert",
    "recognise",
    "unwind",
]
