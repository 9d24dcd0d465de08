"""Linear algebra without matrices: what products with a Jacobian or a Hessian alone can tell.

The first axis is always a batch of independent problems: a function maps ``[batch, ...]`` to
``[batch, ...]``, each entry alone, as models in evaluation mode map images.
"""
# ruff: noqa: F401

from vitlab import boundary
from vitlab.krylov.batches import Operator, check_batch, finite, norms, or_one, random_like, wide
from vitlab.krylov.methods import Extremes, gmres, lanczos, singular_values
from vitlab.krylov.products import Linearisation, hessian, jacobian, linearise, plain_attention

globals().update(boundary.guarded(globals()))
__all__ = [name for name, value in globals().items() if callable(value) and name != "Operator"]
