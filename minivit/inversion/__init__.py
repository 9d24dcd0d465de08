"""From a representation back to an input: by optimisation, exactly, or from a class score."""

from minivit.inversion.criterion import Diverged, noise, shifted_distance
from minivit.inversion.exact.collisions import (
    Collision,
    compare,
    find_collisions,
)
from minivit.inversion.exact.embedding import EmbeddingInverse, PatchPrior
from minivit.inversion.exact.folds import SignChange, collide_across_fold, sign_change
from minivit.inversion.exact.hidden import collide_along, hidden_directions
from minivit.inversion.exact.norms import Fibre, Meeting, fibre, meeting
from minivit.inversion.exact.residual import (
    ResidualPreimage,
    branches,
    invert_block,
    invert_residual,
    lipschitz,
)
from minivit.inversion.exact.solvers import (
    Preimage,
    invert_mlp,
    levenberg_marquardt,
    newton_krylov,
)
from minivit.inversion.fourier import Fourier, viewed
from minivit.inversion.generate import Generated, generate
from minivit.inversion.optimise import invert
from minivit.inversion.pixels import Pixels, blurred
from minivit.inversion.recognition import Recognition, recognise
from minivit.inversion.result import Inversion, decibels
from minivit.inversion.to_pixels import Told, linear_guess
from minivit.inversion.unwind import Stage, Unwound, unwind

__all__ = [
    "Collision",
    "Diverged",
    "EmbeddingInverse",
    "Fibre",
    "Fourier",
    "Generated",
    "Inversion",
    "Meeting",
    "PatchPrior",
    "Pixels",
    "Preimage",
    "Recognition",
    "ResidualPreimage",
    "SignChange",
    "Stage",
    "Told",
    "Unwound",
    "blurred",
    "branches",
    "collide_across_fold",
    "collide_along",
    "compare",
    "decibels",
    "fibre",
    "find_collisions",
    "generate",
    "hidden_directions",
    "invert",
    "invert_block",
    "invert_mlp",
    "invert_residual",
    "levenberg_marquardt",
    "linear_guess",
    "lipschitz",
    "meeting",
    "newton_krylov",
    "noise",
    "recognise",
    "shifted_distance",
    "sign_change",
    "unwind",
    "viewed",
]
