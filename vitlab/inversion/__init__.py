"""From a representation back to an input: by optimisation, exactly, or from a class score."""
# ruff: noqa: F401

from vitlab import boundary
from vitlab.inversion.climb import Climb
from vitlab.inversion.collisions import (
    collide_across_fold,
    collide_along,
    compare,
    find_collisions,
    hidden_directions,
    sign_change,
)
from vitlab.inversion.criterion import Diverged, noise, shifted_distance
from vitlab.inversion.embedding import EmbeddingInverse, PatchPrior, Told, linear_guess
from vitlab.inversion.generate import Generated, generate, recognise
from vitlab.inversion.norms import fibre, meeting
from vitlab.inversion.optimise import Inversion, decibels, invert
from vitlab.inversion.paintings import Fourier, Pixels, blurred, viewed
from vitlab.inversion.residual import branches, invert_block, invert_residual, lipschitz
from vitlab.inversion.solvers import levenberg_marquardt, newton_krylov
from vitlab.inversion.unwind import Unwound, unwind

globals().update(boundary.guarded(globals()))
