"""Inversion by optimisation: an input whose activation at a named point is a given one."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from minivit.model import check_rule
from vitlab.calls import activation, expect, refuse_training
from vitlab.inversion.criterion import Match, noise, shifted_distance
from vitlab.inversion.lbfgs import lbfgs
from vitlab.inversion.optimisers import adam, gauss_newton, gradient_descent
from vitlab.inversion.result import Inversion, padded
from vitlab.inversion.solvers import Batch
from vitlab.krylov import Operator, check_batch, finite, norms, wide, widened

OPTIMISERS = ("gd", "adam", "lbfgs", "gauss-newton")
MEAN, STD = 0.7, 1 / 20  # of the noise to start from, as in the source
SAME = 0.01  # fraction of an activation by which the same image's may differ the next time


@torch.inference_mode(False)  # in which nothing has a gradient
def invert(
    model: nn.Module,
    image: Batch | None = None,
    at: str = "",
    *,
    target: Batch | None = None,
    optimizer: str = "lbfgs",
    steps: int = 300,
    start: Batch | None = None,
    seed: int = 0,
    step_size: float | None = None,
    blur: float | None = None,
    shift: float = 1 / 20,
) -> Inversion:
    """Looks for an input whose activation at a named point is that of an image.

    The optimiser, a function of :mod:`~vitlab.inversion.optimisers` or ``lbfgs``, sees the target
    activation and nothing else of the image. Each image of a batch is inverted by itself.

    Args:
        model: Any module in evaluation mode that reads one tensor, each entry of a batch alone. It
            computes in the image's dtype, if need be as a copy; the search in float32 or wider.
        target: Instead of an image, the activation to reach; give ``start``, too.
        steps: At most. A step of ``"gd"`` and ``"adam"`` is one evaluation; one of ``"lbfgs"``
            seldom more, one of ``"gauss-newton"`` dozens.
        start: Default: the source's noise from N(0.7, 1/20), the same for each image.
        step_size: Of ``"gd"``, by default as for the linearised problem, and ``"adam"``, 0.03.
        blur: Standard deviation in pixels of the 3 x 3 Gaussian after the first step of ``"gd"``,
            2.4 in the source. It falls linearly to 0 after the last. Default: none.
        shift: Standard deviation of the noise that makes the shifted image of the criterion.
    """
    options = SimpleNamespace(
        optimizer=optimizer, steps=steps, step_size=step_size, blur=blur, shift=shift
    )
    check_rule(options, optimizer in OPTIMISERS, f"optimizer is one of {', '.join(OPTIMISERS)}")
    check_rule(options, steps >= 1 and shift > 0, "steps and shift are positive")
    sized = step_size is None or (optimizer in ("gd", "adam") and step_size > 0)
    check_rule(options, sized, "step_size is positive, and the optimizer gd or adam")
    like = start if image is None else image
    if like is None or (image is None) == (target is None):
        raise ValueError("expected an image, or a target and a start: got neither, or both")
    blurs = blur is None or (optimizer == "gd" and blur > 0 and like.ndim == 4)
    check_rule(options, blurs, "blur is positive, and the optimizer gd, on images")
    for tensor in (image, target, start):
        if tensor is not None:
            check_batch(tensor)
            finite(tensor, "a tensor")
    if start is not None and start.shape != like.shape:
        raise ValueError(f"expected a start like the image: got {[*start.shape]}, {[*like.shape]}")
    refuse_training(model)
    dtype = like.dtype
    function = widened(activation(in_dtype(model, dtype), at), dtype)
    like = like.detach().to(wide(dtype))
    start = MEAN + STD * noise(like, 2 * seed) if start is None else start.detach()
    reached = _activation(function, like, target, at)
    threshold = shifted_distance(function, like, shift, 2 * seed + 1) if target is None else None
    match = Match(function, reached.to(like), like.shape[1:], image, dtype)
    x = start.to(like).flatten(1).clone()
    iterations: Iterator[None]
    if optimizer == "gd":
        iterations = gradient_descent(
            match, x, step_size, torch.linspace(blur or 0, 0, steps).tolist()
        )
    elif optimizer == "adam":
        iterations = adam(match, x, step_size or 0.03)
    else:
        iterations = (lbfgs if optimizer == "lbfgs" else gauss_newton)(match, x)
    for _ in islice(iterations, steps):
        pass
    return Inversion(
        match.best.view_as(like).to(dtype),
        torch.tensor([len(record) for record in match.features], device=like.device),
        padded(match.features, like),
        None if image is None else padded(match.inputs, like),
        threshold,
        match.arrived(match.entries),
        image,
    )


@torch.no_grad()
def _activation(function: Operator, like: Tensor, target: Tensor | None, at: str) -> Tensor:
    """The activation to reach: a target that fits, or that of an image, the same twice."""
    reached = function(like)
    shape = list(reached.shape)
    fits = len(shape) > 1 and shape[0] == len(like)
    expect(fits, f"an activation [{len(like)}, ...] at {at!r}", shape)
    if target is not None:
        fits = target.shape == reached.shape
        expect(fits, f"a target {shape} at {at!r}", list(target.shape))
        return target.detach()
    moved = (norms(function(like) - reached) > SAME * norms(reached)).any()
    expect(not moved, f"a model that draws nothing at random up to {at!r}", "another activation")
    return reached


def in_dtype(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The model, or a copy if its floating numbers are of another dtype or can have no gradient."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    if all(t.dtype == dtype and not t.is_inference() for t in tensors):
        return model
    return deepcopy(model).to(dtype)
