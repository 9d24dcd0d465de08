"""Linear algebra without matrices: what products with a Jacobian or a Hessian alone can tell.

The first axis is always a batch of independent problems: a function maps ``[batch, ...]`` to
``[batch, ...]``, each entry alone, as models in evaluation mode map images.
"""
# ruff: noqa: F401

from vitlab import boundary
from vitlab.krylov.methods import Extremes, gmres, lanczos, singular_values
from vitlab.krylov.products import (
    Linearisation,
    Operator,
    check_batch,
    finite,
    hessian,
    jacobian,
    linearise,
    norms,
    or_one,
    plain_attention,
    random_like,
    wide,
)

globals().update(boundary.guarded(globals()))
__all__ = [name for name, value in globals().items() if callable(value) and name != "Operator"]
