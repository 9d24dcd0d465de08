"""Inversion by optimisation: an input whose activation at a named point is a given one."""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from minivit.inversion.criterion import Match, noise, shifted_distance
from minivit.inversion.lbfgs import lbfgs
from minivit.inversion.optimisers import adam, gauss_newton, gradient_descent
from minivit.inversion.result import Inversion, padded
from minivit.krylov import (
    Operator,
    finite,
    jacobian,
    linearise,
    norms,
    random_like,
    singular_values,
    wide,
    widened,
)
from minivit.recording import activation
from minivit.recording.calls import refuse_training

OPTIMISERS = ("gd", "adam", "lbfgs", "gauss-newton")
MEAN, STD = 0.7, 1 / 20  # of the noise to start from, the source's
SAME = 0.01  # share of an activation by which the same picture's may differ the next time
DENSE = 4096  # numbers of an input up to which its Jacobian is computed as a matrix


@torch.inference_mode(False)  # in which nothing has a gradient
def invert(
    model: nn.Module,
    image: Tensor | None = None,
    at: str = "",
    *,
    target: Tensor | None = None,
    optimizer: str = "lbfgs",
    steps: int = 300,
    start: Tensor | None = None,
    seed: int = 0,
    step_size: float | None = None,
    blur: float | None = None,
    shift: float = 1 / 20,
    smallest: bool = False,
    progress: bool = False,
) -> Inversion:
    """Looks for an input whose activation at a named point is that of a picture::

        found = invert(model, images, at="blocks.3")
        found = invert(model.blocks[3], tokens)  # one block alone: its input is tokens

    The optimiser sees the target activation and nothing else of the picture. The pictures of a
    batch are inverted each by itself. Memory does not grow with the steps.

    - ``"gd"``: gradient descent on the feature distance ``‖O(x) - target‖``, as the source has it:
      ``x <- blur(x - ε g)``. Without a step size, ``ε`` is the distance over ``σ²``, the square of
      the Jacobian's largest singular value at the start; finding that counts as 21 evaluations.
    - ``"adam"``: Kingma & Ba (2015).
    - ``"lbfgs"``: the quasi-Newton method of Nocedal (1980), with 100 steps remembered.
    - ``"gauss-newton"``: the linearised problem solved at every step, by conjugate gradients.

    Args:
        model: Any module in evaluation mode that reads one tensor, every entry of a batch alone.
        image: Pictures in the model's input space, ``[batch, ...]``. Their dtype is what the model
            computes in: one of another is copied. The search itself is in float32 or wider.
        at: The name of a module in the model. Default: the model itself, its output.
        target: In place of pictures, the activation to reach, ``[batch, ...]``; give ``start``.
        optimizer: ``"gd"``, ``"adam"``, ``"lbfgs"`` or ``"gauss-newton"``.
        steps: Steps at most; fewer where rounding or, with ``"lbfgs"``, a minimum is reached. One
            evaluation each with ``"gd"`` and ``"adam"``, before the step, so that the result of the
            last is none; seldom more with ``"lbfgs"``, dozens with ``"gauss-newton"``.
        start: Where to start, ``[batch, ...]``. Default: noise from N(0.7, 1/20), deviation 1/20,
            as in the source, and the same for every picture. Of a trained model with layer norms
            flat patches on the other side of grey may end at local minima, whatever the optimizer.
        seed: For that noise and for the shift of the criterion.
        step_size: Of ``"gd"`` (see there) and ``"adam"`` (default: 0.03).
        blur: Deviation in pixels of the 3 x 3 Gaussian that follows the first step of ``"gd"``; it
            falls by ``blur / (steps - 1)`` a step. The last step would have none, but its result is
            not evaluated: all inputs but the start were blurred. The source has 2.4. Default: none.
        shift: Deviation of the noise that makes the slightly shifted picture of the source's
            criterion, 1/20 in one place of the source and 1/18 in another.
        smallest: Whether to compute the smallest singular value of the Jacobian at the image. For
            inputs of more than 4096 numbers it is an upper bound, from 100 steps of Lanczos.
        progress: Whether to show a bar, by tqdm, which ``minivit[train]`` brings.

    Returns:
        The nearest inputs in feature distance, detached, of the pictures' dtype (with a target the
        start's), and the distances of all evaluations, in float64.

    Raises:
        TypeError: No module, no name, or tensors that are not of floating numbers.
        LookupError: No module has this name.
        ValueError: An option that is none, shapes that do not fit, numbers that are not finite, an
            activation without an entry for every input, or a model in training mode or one that
            draws at random all the same; a start away from the target whose distance to it does not
            depend on the picture.
        RuntimeError: The module at this name did not run, or gave other than one tensor.
        ~minivit.inversion.criterion.Diverged: The steps were too long: the feature distance grew a
            million times or was no longer finite; or it is not finite where it starts.
    """
    given = {"image": image, "target": target, "start": start}
    if not isinstance(at, str):
        raise TypeError(f"at is the name of a module: got {at!r}")
    _check(model, given, optimizer, steps, step_size, blur, shift)
    like = start if image is None else image
    assert like is not None  # for mypy: checked
    dtype = like.dtype
    function = widened(activation(in_dtype(model, dtype), at), dtype)
    like = like.detach().to(wide(dtype))
    start = MEAN + STD * noise(like, 2 * seed) if start is None else start.detach()
    threshold = None
    with torch.no_grad():
        reached = function(like)
        if reached.ndim < 2 or len(reached) != len(like):
            raise ValueError(
                f"expected an activation [{len(like)}, ...] at {at!r}, an entry for every input: "
                f"got {list(reached.shape)}"
            )
        if target is None:
            target = reached
            again = function(like)
            if (norms(again - reached) > SAME * norms(reached)).any():
                raise ValueError(
                    f"expected the same activation of the same picture at {at!r}: got another the "
                    "second time, as of a model that draws at random in evaluation mode too"
                )
            threshold = shifted_distance(function, like, shift, 2 * seed + 1, again)
        elif target.shape != reached.shape:
            raise ValueError(
                f"the model gives {list(reached.shape)} at {at!r}: got a target "
                f"{list(target.shape)}"
            )
    match = Match(function, target.detach().to(like), like.shape[1:], image, dtype)
    way = _way(match, start.to(like).flatten(1).clone(), optimizer, steps, step_size, blur)
    for _ in _shown(islice(way, steps), steps, progress):
        pass
    best = match.best.view_as(like)
    return Inversion(
        best.to(dtype),
        torch.tensor([len(record) for record in match.features], device=like.device),
        padded(match.features, like),
        None if image is None else padded(match.inputs, like),
        threshold,
        match.arrived(match.entries),
        _smallest(function, best) if smallest else None,
        image,
    )


def _check(
    model: nn.Module,
    given: dict[str, Tensor | None],
    optimizer: str,
    steps: int,
    step_size: float | None,
    blur: float | None,
    shift: float,
) -> None:
    """Refuses what :func:`invert` cannot work with."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected an nn.Module: got {type(model).__name__}")
    refuse_training(model)
    if (given["image"] is None) == (given["target"] is None):
        raise ValueError("give an image to invert or a target activation, and not both")
    if given["target"] is not None and given["start"] is None:
        raise ValueError("with a target give a start too: it says what an input is like")
    for name, tensor in given.items():
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TypeError(f"expected {name} to be a tensor of floating numbers: got {kind}")
        if tensor.ndim < 2 or not tensor.numel() or not tensor.isfinite().all():
            raise ValueError(
                f"expected {name} [batch, ...] of finite numbers, one entry or more: got "
                f"{list(tensor.shape)}" + ", not all finite" * (not tensor.isfinite().all())
            )
    image, start = given["image"], given["start"]
    if image is not None and start is not None:
        one, other = ((list(t.shape), t.dtype, t.device) for t in (start, image))
        if one != other:
            raise ValueError(f"expected a start like the image, {other}: got {one}")
    if optimizer not in OPTIMISERS:
        raise ValueError(f"the optimizer is one of {', '.join(OPTIMISERS)}: got {optimizer!r}")
    if type(steps) is not int or steps < 1:
        raise ValueError(f"steps is a positive integer: got {steps!r}")
    if step_size is not None and (optimizer not in ("gd", "adam") or not step_size > 0):
        raise ValueError(f"step_size is positive, of gd and adam: got {step_size}, {optimizer!r}")
    like = start if image is None else image
    if blur is not None and (
        optimizer != "gd" or not blur > 0 or (like is not None and like.ndim != 4)
    ):
        raise ValueError(f"blur is positive, of gd on images: got {blur}, {optimizer!r}")
    if not shift > 0:
        raise ValueError(f"shift is positive: got {shift}")


def in_dtype(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The model, or a copy of it if its floating numbers are of another dtype, or have no graph."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    if all(t.dtype == dtype and not t.is_inference() for t in tensors):
        return model
    return deepcopy(model).to(dtype)


def _way(
    match: Match,
    x: Tensor,
    optimizer: str,
    steps: int,
    step_size: float | None,
    blur: float | None,
) -> Iterator[None]:
    """The optimiser on its way from ``x``, ``[batch, n]``."""
    if optimizer == "gd":
        blurs = torch.linspace(blur or 0, 0, steps).tolist()
        return gradient_descent(match, x, step_size, blurs)
    if optimizer == "adam":
        return adam(match, x, step_size or 0.03)
    return lbfgs(match, x) if optimizer == "lbfgs" else gauss_newton(match, x)


def _shown(way: Iterable[Any], steps: int, progress: bool) -> Iterable[Any]:
    """The same steps, with a bar that counts them."""
    if not progress:
        return way
    from tqdm import tqdm  # only who asks for a bar needs it

    return tqdm(way, total=steps, unit="step", leave=False)


def _smallest(function: Operator, x: Tensor) -> Tensor:
    """The smallest singular value of every Jacobian, 0 where it has a null space: ``[batch]``."""
    with torch.no_grad():
        numbers = function(x)[0].numel()
    if numbers < x[0].numel():
        return torch.zeros(len(x), dtype=x.dtype, device=x.device)
    if x[0].numel() > DENSE:
        at = linearise(function, x)
        return singular_values(at.push, at.pull, random_like(x), 100).values[:, -1]
    matrices = (finite(jacobian(function, entry)[0]) for entry in x.split(1))
    return torch.stack([torch.linalg.svdvals(matrix)[-1] for matrix in matrices])
