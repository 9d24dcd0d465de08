"""The exact way back, layer by layer, and what stands in its way: fibres and collisions.

Work in float64: ``model.double().eval()``. Nothing here is trained, and what cannot be undone is
described instead, by everything that it might have been.
"""

from minivit.inversion.exact.collisions import (
    Collision,
    compare,
    find_collisions,
    search_pictures,
)
from minivit.inversion.exact.embedding import EmbeddingInverse, PatchPrior
from minivit.inversion.exact.folds import SignChange, collide_across_fold, sign_change
from minivit.inversion.exact.hidden import collide_along, hidden_directions
from minivit.inversion.exact.mlp import invert_mlp
from minivit.inversion.exact.norms import Fibre, Meeting, fibre, meeting
from minivit.inversion.exact.residual import (
    ResidualPreimage,
    branches,
    invert_block,
    invert_residual,
    lipschitz,
)
from minivit.inversion.exact.solvers import Preimage, levenberg_marquardt, newton_krylov

__all__ = [
    "Collision",
    "EmbeddingInverse",
    "Fibre",
    "Meeting",
    "PatchPrior",
    "Preimage",
    "ResidualPreimage",
    "SignChange",
    "branches",
    "collide_across_fold",
    "collide_along",
    "compare",
    "fibre",
    "find_collisions",
    "hidden_directions",
    "invert_block",
    "invert_mlp",
    "invert_residual",
    "levenberg_marquardt",
    "lipschitz",
    "meeting",
    "newton_krylov",
    "search_pictures",
    "sign_change",
]
