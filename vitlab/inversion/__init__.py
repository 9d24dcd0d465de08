"""From a representation back to an input: by optimisation, exactly, or from a class score."""

from vitlab.inversion.criterion import Diverged, noise, shifted_distance
from vitlab.inversion.exact.collisions import Collision, compare, find_collisions
from vitlab.inversion.exact.embedding import EmbeddingInverse, PatchPrior
from vitlab.inversion.exact.folds import SignChange, collide_across_fold, sign_change
from vitlab.inversion.exact.hidden import collide_along, hidden_directions
from vitlab.inversion.exact.norms import Fibre, Meeting, fibre, meeting
from vitlab.inversion.exact.residual import (
    ResidualPreimage,
    branches,
    invert_block,
    invert_residual,
    lipschitz,
)
from vitlab.inversion.exact.solvers import Preimage, invert_mlp, levenberg_marquardt, newton_krylov
from vitlab.inversion.fourier import Fourier, viewed
from vitlab.inversion.generate import Generated, generate
from vitlab.inversion.optimise import invert
from vitlab.inversion.pixels import Pixels, blurred
from vitlab.inversion.recognition import Recognition, recognise
from vitlab.inversion.result import Inversion, decibels
from vitlab.inversion.to_pixels import Told, linear_guess
from vitlab.inversion.unwind import Stage, Unwound, unwind

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
