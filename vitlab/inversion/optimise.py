"""Inversion by optimisation: an input whose activation at a named point is a given one."""

from collections.abc import Iterable
from copy import deepcopy
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitlab.calls import activation
from vitlab.inversion.checks import check_options
from vitlab.inversion.criterion import Match, noise, shifted_distance
from vitlab.inversion.lbfgs import lbfgs
from vitlab.inversion.optimisers import adam, gauss_newton, gradient_descent
from vitlab.inversion.result import Inversion, padded
from vitlab.krylov import (
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

MEAN = 0.7  # of the noise to start from, as in the source
STD = 1 / 20  # likewise
SAME = 0.01  # fraction of an activation by which the same image's may differ the next time
DENSE = 4096  # numbers of an input up to which its Jacobian is computed as a matrix


@torch.inference_mode(False)  # in which nothing has a gradient
def invert(
    model: nn.Module,
    image: Float[Tensor, "batch ..."] | None = None,
    at: str = "",
    *,
    target: Float[Tensor, "batch ..."] | None = None,
    optimizer: str = "lbfgs",
    steps: int = 300,
    start: Float[Tensor, "batch ..."] | None = None,
    seed: int = 0,
    step_size: float | None = None,
    blur: float | None = None,
    shift: float = 1 / 20,
    smallest: bool = False,
    progress: bool = False,
) -> Inversion:
    """Looks for an input whose activation at a named point is that of an image::

        found = invert(model, images, at="blocks.3")
        found = invert(model.blocks[3], tokens)  # one block alone: its input is tokens

    The optimiser sees the target activation and nothing else of the image. Each image of a batch is
    inverted by itself. Memory does not grow with the steps.

    - ``"gd"``: gradient descent on the feature distance ``‖O(x) - target‖``, as the source has it:
      ``x <- blur(x - ε g)``. Without a step size, ``ε`` is the distance over ``σ²``, the square of
      the Jacobian's largest singular value at the start; finding that counts as 21 evaluations.
    - ``"adam"``: Kingma & Ba (2015).
    - ``"lbfgs"``: the quasi-Newton method of Nocedal (1980), with 100 steps remembered.
    - ``"gauss-newton"``: the linearised problem solved at each step, by conjugate gradients.

    Args:
        model: Any module in evaluation mode that reads one tensor, each entry of a batch alone.
        image: In the model's input space. The model computes in its dtype, and is copied if it has
            another. The search itself is in float32 or wider.
        at: The name of a module in the model. Default: the model itself, its output.
        target: Instead of an image, the activation to reach; give ``start``, too.
        steps: Steps at most; fewer where rounding or, with ``"lbfgs"``, a minimum is reached. One
            evaluation each with ``"gd"`` and ``"adam"``, before the step, so that the result of the
            last step is not evaluated; seldom more with ``"lbfgs"``, dozens with
            ``"gauss-newton"``.
        start: Default: noise from N(0.7, 1/20), standard deviation 1/20, as in the source, and the
            same for each image. For trained models with layer norms, searches from flat patches of
            the opposite brightness may end at local minima, whatever the optimiser.
        seed: For that noise and for the shift of the criterion.
        step_size: Of ``"gd"`` (see there) and ``"adam"`` (default: 0.03).
        blur: Standard deviation in pixels of the 3 x 3 Gaussian after the first step of ``"gd"``;
        it
            falls by ``blur / (steps - 1)`` a step, to 0 after the last, whose result is not
            evaluated: all inputs but the start were blurred. The source has 2.4. Default: none.
        shift: Standard deviation of the noise that makes the slightly shifted image of the source's
            criterion: 1/20 in one passage of the source and 1/18 in another.
        smallest: Whether to compute the smallest singular value of the Jacobian at the image. For
            inputs of more than 4096 numbers it is an upper bound, from 100 steps of Lanczos.
        progress: Whether to show a bar, by tqdm, which ``minivit[train]`` installs.

    Returns:
        The nearest inputs in feature distance, detached, in the dtype of the image or start, and
        the distances of all evaluations, in float64.

    Raises:
        TypeError: The model is not a module, the name not a string, or a tensor not of floating
            numbers.
        LookupError: No module has this name.
        ValueError: An unknown or impossible option, shapes that do not fit, numbers that are not
            finite, an activation without an entry for each input, a model in training mode or one
            that draws at random all the same; a start away from the target whose distance to it
            does not depend on the image.
        RuntimeError: The module at this name did not run, or gave other than one tensor.
        ~vitlab.inversion.criterion.Diverged: The steps were too long: the feature distance grew a
            million times or was no longer finite; or it is not finite where it starts.
    """
    given = {"image": image, "target": target, "start": start}
    if not isinstance(at, str):
        raise TypeError(f"at is the name of a module: got {at!r}")
    check_options(model, given, optimizer, steps, step_size, blur, shift)
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
                    f"expected the same activation of the same image at {at!r}: got another the "
                    "second time, as of a model that draws at random in evaluation mode too"
                )
            threshold = shifted_distance(function, like, shift, 2 * seed + 1, again)
        elif target.shape != reached.shape:
            raise ValueError(
                f"the model gives {list(reached.shape)} at {at!r}: got a target "
                f"{list(target.shape)}"
            )
    match = Match(function, target.detach().to(like), like.shape[1:], image, dtype)
    x = start.to(like).flatten(1).clone()
    if optimizer == "gd":
        way = gradient_descent(match, x, step_size, torch.linspace(blur or 0, 0, steps).tolist())
    elif optimizer == "adam":
        way = adam(match, x, step_size or 0.03)
    elif optimizer == "lbfgs":
        way = lbfgs(match, x)
    else:
        way = gauss_newton(match, x)
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


def in_dtype(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The model, or a copy if its floating numbers are of another dtype or can have no gradient."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    if all(t.dtype == dtype and not t.is_inference() for t in tensors):
        return model
    return deepcopy(model).to(dtype)


def _shown(way: Iterable[Any], steps: int, progress: bool) -> Iterable[Any]:
    """The same steps, with a bar if wanted."""
    if not progress:
        return way
    from tqdm import tqdm  # needed only for the bar

    return tqdm(way, total=steps, unit="step", leave=False)


def _smallest(function: Operator, x: Tensor) -> Float[Tensor, " batch"]:
    """The smallest singular value of each Jacobian, 0 where it has a null space."""
    with torch.no_grad():
        numbers = function(x)[0].numel()
    if numbers < x[0].numel():
        return torch.zeros(len(x), dtype=x.dtype, device=x.device)
    if x[0].numel() > DENSE:
        at = linearise(function, x)
        return singular_values(at.push, at.pull, random_like(x), 100).values[:, -1]
    matrices = (finite(jacobian(function, entry)[0]) for entry in x.split(1))
    return torch.stack([torch.linalg.svdvals(matrix)[-1] for matrix in matrices])
