"""From a representation back to an input: by optimisation, exactly, or from a class score."""

from vitlab.inversion.collisions import (
    Collision,
    SignChange,
    collide_across_fold,
    compare,
    find_collisions,
    sign_change,
)
from vitlab.inversion.criterion import Diverged, noise, shifted_distance
from vitlab.inversion.embedding import EmbeddingInverse, PatchPrior
from vitlab.inversion.generate import Generated, generate
from vitlab.inversion.hidden import collide_along, hidden_directions
from vitlab.inversion.norms import Fibre, Meeting, fibre, meeting
from vitlab.inversion.optimise import invert
from vitlab.inversion.paintings import Fourier, Pixels, blurred, viewed
from vitlab.inversion.recognition import Recognition, recognise
from vitlab.inversion.residual import (
    ResidualPreimage,
    branches,
    invert_block,
    invert_residual,
    lipschitz,
)
from vitlab.inversion.result import Inversion, decibels
from vitlab.inversion.solvers import Preimage, levenberg_marquardt, newton_krylov
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
