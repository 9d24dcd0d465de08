"""Inversion by optimisation: an input whose activation at a named point is a given one."""

import math
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from minivit.model import check_rule
from vitlab.calls import activation, expect, refuse_training
from vitlab.inversion.criterion import Match, noise, shifted_distance
from vitlab.inversion.lbfgs import lbfgs
from vitlab.inversion.optimisers import adam, gauss_newton, gradient_descent
from vitlab.inversion.solvers import Batch, Numbers
from vitlab.krylov.products import check_batch, wide

OPTIMISERS = ("gd", "adam", "lbfgs", "gauss-newton")
MEAN, STD = 0.7, 1 / 20  # of the noise to start from, as in the source
SHIFT = 1 / 20  # standard deviation of the noise that makes the shifted image of the criterion


@dataclass(frozen=True, eq=False)
class Inversion:
    """What an inversion found, and all evaluations on the way: NaN where an image took fewer."""

    image: Batch  # the evaluated input with the smallest feature distance
    evaluations: Int[Tensor, " batch"]  # forward-backward passes
    feature_distance: Float[Tensor, "batch evaluations"]  # ‖O(x) - target‖
    input_distance: Float[Tensor, "batch evaluations"] | None  # ‖x - picture‖
    threshold: Numbers | None  # feature distance of the slightly shifted image
    picture: Batch | None  # the original image

    @property
    def psnr(self) -> Numbers | None:
        """PSNR of the image in dB, against the original's own range."""
        if self.picture is None or self.input_distance is None:
            return None
        best = self.feature_distance.nan_to_num(math.inf).argmin(1, keepdim=True)
        return decibels(self.input_distance.gather(1, best)[:, 0], self.picture)

    @property
    def met(self) -> list[int | None]:
        """The first evaluation, from 1, with a feature distance below the threshold."""
        if self.threshold is None:
            return [None] * len(self.evaluations)
        below = self.feature_distance < self.threshold[:, None]
        return [int(row.float().argmax()) + 1 if row.any() else None for row in below]


def decibels(
    distance: Float[Tensor, "batch *evaluations"], image: Batch
) -> Float[Tensor, "batch *evaluations"]:
    """PSNR at a Euclidean distance from an image, whose own range is the peak."""
    expect(not (distance < 0).any(), "distances from 0", "some below")
    flat = image.flatten(1)
    peak = (flat.amax(1) - flat.amin(1)) * flat.shape[1] ** 0.5
    expect((peak > 0).all(), "images each of two values or more", "a constant one")
    return 20 * torch.log10(peak.view(-1, *[1] * (distance.ndim - 1)) / distance)


@torch.inference_mode(False)  # in which nothing has a gradient
def invert(
    model: nn.Module,
    image: Float[Tensor, "batch *shape"] | None = None,
    at: str = "",
    *,
    target: Batch | None = None,
    optimizer: str = "lbfgs",
    steps: int = 300,
    start: Float[Tensor, "batch *shape"] | None = None,
    step_size: float | None = None,
    blur: float | None = None,
) -> Inversion:
    """Looks for an input whose activation at a named point is that of an image.

    The optimiser, a function of :mod:`~vitlab.inversion.optimisers` or ``lbfgs``, sees the target
    activation and nothing else of the image. Each image of a batch is inverted by itself, in its
    dtype or in float32, by any module in evaluation mode that reads one tensor.

    Args:
        target: Instead of an image, the activation to reach; give ``start``, too.
        steps: At most. A step of ``"lbfgs"`` seldom takes more than one evaluation, one of
            ``"gauss-newton"`` dozens.
        start: Default: the source's noise from N(0.7, 1/20), the same for each image.
        step_size: Of ``"gd"``, by default as for the linearised problem, and ``"adam"``, 0.03.
        blur: Standard deviation in pixels of the 3 x 3 Gaussian after the first step of ``"gd"``,
            falling to 0 after the last: 2.4 in the source. Default: none.
    """
    options = SimpleNamespace(optimizer=optimizer, step_size=step_size, blur=blur)
    check_rule(options, optimizer in OPTIMISERS, f"optimizer is one of {', '.join(OPTIMISERS)}")
    sized = step_size is None or (optimizer in ("gd", "adam") and step_size > 0)
    check_rule(options, sized, "step_size is positive, and the optimizer gd or adam")
    like = start if image is None else image
    if like is None or (image is None) == (target is None):
        raise ValueError("expected an image, or a target and a start: got neither, or both")
    blurs = blur is None or (optimizer == "gd" and blur > 0 and like.ndim == 4)
    check_rule(options, blurs, "blur is positive, and the optimizer gd, on images")
    check_batch(like)
    refuse_training(model)
    like = like.detach().to(wide(like.dtype))
    function = activation(in_dtype(model, like.dtype), at)
    with torch.no_grad():
        reached = function(like)
    shape = list(reached.shape)
    fits = len(shape) > 1 and shape[0] == len(like)
    expect(fits, f"an activation [{len(like)}, ...] at {at!r}", shape)
    if target is not None:
        fits = target.shape == reached.shape
        expect(fits, f"a target {shape} at {at!r}", list(target.shape))
        reached = target.detach().to(like)
    threshold = shifted_distance(function, like, SHIFT, 1) if target is None else None
    picture = None if image is None else like
    match = Match(function, reached, like.shape[1:], picture)
    x = MEAN + STD * noise(like, 0) if start is None else start.detach().to(like)
    x = x.flatten(1).clone()
    ways = {  # generators: none begins before it is asked for a step
        "gd": gradient_descent(match, x, step_size, torch.linspace(blur or 0, 0, steps).tolist()),
        "adam": adam(match, x, step_size or 0.03),
        "lbfgs": lbfgs(match, x),
        "gauss-newton": gauss_newton(match, x),
    }
    for _ in islice(ways[optimizer], steps):
        pass
    return Inversion(
        match.best.view_as(like),
        torch.tensor([len(record) for record in match.features], device=like.device),
        _padded(match.features, like),
        None if picture is None else _padded(match.inputs, like),
        threshold,
        picture,
    )


def _padded(records: list[list[float]], like: Tensor) -> Float[Tensor, "batch longest"]:
    """Records of different lengths in float64, with NaN after their ends."""
    rows = [torch.tensor(record, dtype=torch.float64) for record in records]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=math.nan).to(like.device)


def in_dtype(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The model, or a copy if its floating numbers are of another dtype or can have no gradient."""
    tensors = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    if all(t.dtype == dtype and not t.is_inference() for t in tensors):
        return model
    return deepcopy(model).to(dtype)
