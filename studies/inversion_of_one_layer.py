"""How much of an image does one layer keep, and how hard is it to recover?

Corners of photographs, 8 x 8 pixels and so four tokens, are recovered from the first norm and
attention, or MLP, of the small ViT: by gradient descent, then by Gauss-Newton, from noise and from
near the image. Where a search misses the output, its derivatives tell whether it ended at a local
minimum. Every residual branch of attention is inverted on whole photographs, with and without norm.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.vit import ViT
from studies.runner.survey import Survey
from vitlab.calls import activation
from vitlab.data.photographs import crops
from vitlab.inversion import invert_residual, levenberg_marquardt, lipschitz
from vitlab.krylov import Operator, jacobian, norms, plain_attention, random_like

PARTS = ("norm", "attention", "mlp")
CORNER = 2  # tokens on its side
PICTURES, STEPS = 3, 1000  # the steps are those of descent, and of Gauss-Newton at most
RATES = (0.3, 1, 3, 10)  # step sizes, over the largest squared singular value
SHIFT = 1 / 20  # the standard deviation of the noise whose output is to be matched better
OWN, REACHED = 1e-8, 1e-10  # relative errors: of tokens that are the same, of an output reached


def layer(model: Any, part: str, side: int = CORNER) -> Operator:
    """From the corner of an image to the first block's norm, attention or MLP."""
    block = model.blocks[0]
    places = model.positions.table.view(*model.config.grid, -1)[:side, :side].flatten(0, 1)

    def through(images: Tensor) -> Tensor:
        x = model.patch_embedding(images) + places  # [batch, side * side, dim]
        if part == "mlp":
            return block.mlp(block.norm2(x))
        return block.norm1(x) if part == "norm" else block.attention(block.norm1(x))

    return through


def descend(function: Operator, images: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient descent on half the squared distance of the outputs, for every step size.

    For every image the least number of steps until the output is matched better than the shifted
    image matches it, infinite if never; and where the best step size ended.
    """
    y = function(images)
    goal = norms(function(images + SHIFT * random_like(images)) - y).repeat(len(RATES))
    stretch = torch.linalg.matrix_norm(jacobian(function, images), 2).square()  # [batch]
    rate = torch.cat([share / stretch for share in RATES])[:, None, None, None]
    x, y = start.repeat(len(RATES), 1, 1, 1), y.repeat(len(RATES), 1, 1)
    first = torch.full_like(goal, torch.inf)
    for step in range(STEPS + 1):
        x.requires_grad_()
        off = function(x) - y
        distance = norms(off).detach()
        first = torch.where((distance < goal) & first.isinf(), step, first)
        (slope,) = torch.autograd.grad(off.square().sum() / 2, x)
        x = (x - rate * slope if step < STEPS else x).detach()
    nearest = distance.nan_to_num(torch.inf).view(len(RATES), -1).argmin(0)
    chosen = x.view(len(RATES), *images.shape)[nearest, torch.arange(len(images))]
    return first.view(len(RATES), -1).amin(0), chosen


def search(function: Operator, images: Tensor, start: Tensor, damping: float) -> dict[str, Any]:
    """Gradient descent, then Gauss-Newton, and the errors of images and outputs."""
    y = function(images)
    first, nearest = descend(function, images, start)
    ended = levenberg_marquardt(function, y, nearest, STEPS, damping)

    def off(x: Tensor) -> Tensor:
        return norms(x - images) / norms(images)

    return {
        "first": [int(k) if k.isfinite() else None for k in first],
        "descent": {"picture": off(nearest)},
        "newton": {"picture": off(ended.x), "output": norms(function(ended.x) - y) / norms(y)},
        "newton_steps": ended.iterations,
        "missed": [
            None if residual < REACHED else stationary(function, x[None], target[None])
            for x, target, residual in zip(ended.x, y, ended.residual, strict=True)
        ],
    }


def stationary(function: Operator, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Derivatives of half the squared distance where a search ended.

    The gradient's norm, over the output distance and the largest singular value, is only rounding
    at a stationary point; at a strict local minimum all eigenvalues of the Hessian are positive.
    """

    def objective(flat: Tensor) -> Tensor:
        return (function(flat.view_as(x)) - y).square().sum() / 2

    flat = x.flatten()
    with plain_attention():
        gradient = torch.func.grad(objective)(flat)
        values = torch.linalg.eigvalsh(torch.func.hessian(objective)(flat))
    steepest = torch.linalg.matrix_norm(jacobian(function, x)[0], 2) * norms(function(x) - y)
    return {"gradient": (gradient.norm() / steepest)[0], "least": values[0]}


def undone(model: ViT, images: Tensor, norm: bool) -> list[dict[str, Any]]:
    """For each block: of how many images the inverse of the branch recovers the tokens; the size of
    the tokens, and how much the branch stretches from them to the output."""
    table = []
    for i, block in enumerate(model.blocks):
        x = activation(model, f"blocks.{i - 1}" if i else "positions")(images)

        def branch(x: Tensor, block=block) -> Tensor:
            return block.attention(block.norm1(x) if norm else x)

        y = x + branch(x)
        inverse = invert_residual(branch, y, iterations=400)
        own = norms(inverse.x - x) / norms(x) < OWN
        table.append({
            "own": int(own.sum()),
            "other": int((inverse.converged & ~own).sum()),
            "size": x.square().mean((1, 2)).sqrt(),
            "stretch": lipschitz(branch, x, y, points=3, steps=12),
        })  # fmt: skip
    return table


@torch.no_grad()
def conditions(model: ViT, corners: Tensor, side: int) -> dict[str, list[Tensor]]:
    """Condition numbers from the corner of each image to each part."""

    def of(part: str, corner: Tensor) -> Tensor:
        return torch.linalg.cond(jacobian(layer(model, part, side), corner)[0])

    return {part: [of(part, corner) for corner in corners.split(1)] for part in PARTS}


def measure(seed: int | None = None) -> dict[str, Any]:
    """The figures of the trained model, or of the untrained one of a seed."""
    model: Any = minivit.load("cifar10_vit_gap")
    images = model.preprocess(crops(40, 32)[0][:PICTURES]).double()
    if seed is not None:
        torch.manual_seed(seed)
        model = minivit.create("vit_32px")
    model = model.double().eval().requires_grad_(False)
    corners, larger = images[..., : 4 * CORNER, : 4 * CORNER], images[:1, :, :16, :16]
    noise = random_like(corners)
    near = corners + 0.1 * noise * (norms(corners) / norms(noise))[:, None, None, None]
    parts = {part: layer(model, part) for part in ("attention", "mlp")}
    return {
        "condition": conditions(model, corners, CORNER),
        "condition_16": conditions(model, larger, 2 * CORNER),
        "far": {part: search(f, corners, 0.5 * noise, 1.0) for part, f in parts.items()},
        "near": {part: search(f, corners, near, 1e-3) for part, f in parts.items()},
        "with_norm": undone(model, images[:2], True),
        "without_norm": undone(model, images[:2], False),
    }


ROWS = {"trained": measure} | {f"untrained {seed}": partial(measure, seed) for seed in range(5)}
STUDY = Survey("inversion_of_one_layer", ROWS, range(5), digits=".3g")
