"""Residual branches and blocks turned around: the ``x`` for which ``x + f(x)`` is a given ``y``."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from minivit.inversion.exact.solvers import (
    Preimage,
    newton_krylov,
    relative_residual,
    solved,
)
from minivit.krylov import Operator, linearise, norms, or_one, random_like, singular_values
from minivit.networks.ablated import WITHOUT_RESIDUAL, Nothing
from minivit.networks.mixer import FeedForwardBlock, MixerBlock
from minivit.networks.variants import PostNormBlock
from minivit.networks.vit import Block, MultiHeadAttention
from minivit.recording.calls import refuse_training

PATIENCE = 50  # iterations without a smaller residual, after which the fixed point is given up


@dataclass(frozen=True, eq=False)
class ResidualPreimage(Preimage):
    """What :func:`invert_residual` and :func:`invert_block` found, and how."""

    # [batch], the factor by which an iteration of the fixed point shrank the residual at the end;
    # above 1 where it diverged; NaN after less than three iterations
    rate: Tensor
    newton: Tensor  # [batch], whether Newton-Krylov was needed, because the fixed point failed


def branches(block: nn.Module, mask: Tensor | None = None) -> list[Operator]:
    """Gives the branches ``f`` of a block, which is ``x + f(x)`` for each of them in turn.

    Args:
        block: A :class:`~minivit.networks.vit.Block` or :class:`~minivit.networks.mixer.MixerBlock` in evaluation
            mode, with residuals and with the norm before its sub-layers, or none. Parts may have
            been removed.
        mask: As the block takes it.

    Raises:
        TypeError: Another module.
        ValueError: Training mode, a norm behind the sub-layers, no residuals.
    """
    if not isinstance(block, Block | MixerBlock):
        raise TypeError(
            f"expected a block of a minivit.ViT or minivit.Mixer: got {type(block).__name__}"
        )
    refuse_training(block, "the block")
    if type(block) in WITHOUT_RESIDUAL.values():
        raise ValueError("without residuals a block is not x + f(x), and nothing carries x through")
    around = block.norm1, block.norm2
    if isinstance(block, PostNormBlock) and any(type(norm) is not nn.Identity for norm in around):
        raise ValueError(
            "with norm='post' the norm stands behind the addition, and it forgets a number of every"
            " token: expected norm='pre', or a model without norms"
        )
    if isinstance(block, Block):
        parts: list[nn.Module] = [block.attention, block.mlp]
    elif isinstance(block, FeedForwardBlock):
        parts = [block.mlp, block.mixing]
    else:
        parts = [block.mixing, block.mlp]
    pairs = zip(around, parts, strict=True)
    return [partial(_branch, norm, part, mask) for norm, part in pairs if type(part) is not Nothing]


def _branch(norm: nn.Module, part: nn.Module, mask: Tensor | None, x: Tensor) -> Tensor:
    return part(norm(x), mask) if isinstance(part, MultiHeadAttention) else part(norm(x))


def lipschitz(
    branch: Operator, x: Tensor, towards: Tensor, points: int = 5, steps: int = 20
) -> Tensor:
    """Estimates how much a branch stretches distances between two points.

    It is the largest singular value of the branch's Jacobian at points on the straight line from
    ``x`` to ``towards``. If it is below 1 all around a solution ``x``, up to where the iteration
    begins, the fixed point must converge to it (Banach), by at least this factor a step; see
    Behrmann et al. (2019), "Invertible Residual Networks". Points are samples and Lanczos's values
    come from below, so this is an estimate, no proof; and the fixed point may converge without it.

    Args:
        branch: The function ``f``, on ``[batch, ...]``, every entry alone.
        x: One end, ``[batch, ...]``: a solution, say.
        towards: The other, such as the ``y`` where the iteration begins.
        points: Points on the line, its ends among them. Default: 5.
        steps: Steps of :func:`~minivit.krylov.singular_values`. Default: 20.

    Returns:
        The largest stretch for every entry, ``[batch]``.
    """
    share = torch.linspace(0, 1, points, dtype=x.dtype, device=x.device)
    line = torch.lerp(x, towards, share.view(-1, *[1] * x.ndim)).flatten(0, 1)
    at = linearise(branch, line)
    largest = singular_values(at.push, at.pull, random_like(line), steps).values[:, 0]
    return largest.view(points, -1).amax(0)


def invert_residual(
    branch: Operator, y: Tensor, iterations: int = 1000, newton: int = 50
) -> ResidualPreimage:
    """Finds ``x`` with ``x + f(x) = y``.

    First by the fixed-point iteration ``x <- y - f(x)`` from ``x = y``. Entries for which it does
    not converge go on by :func:`~minivit.inversion.exact.solvers.newton_krylov`, from the best
    ``x`` so far. There may be more than one solution where ``f`` stretches distances: the one that
    is found need not be the one that ``y`` was made from.

    Args:
        branch: The function ``f``, on ``[batch, ...]``, every entry alone.
        y: ``[batch, ...]``; float64 gives about 12 digits more than float32's six.
        iterations: Iterations of the fixed point at most. Default: 1000.
        newton: Steps of Newton-Krylov at most; 0 for none. Default: 50.

    Returns:
        The best ``x`` for every entry, detached, of the dtype of ``y``, and how it was found.

    Raises:
        ValueError: Fewer than one iteration.
    """
    if iterations < 1:
        raise ValueError(f"there must be at least one iteration: got {iterations}")
    x, residuals, best = _fixed_point(branch, y, iterations)  # residuals: [iterations, batch]
    entries = torch.arange(len(y), device=y.device)
    residual = residuals[best, entries]
    failed = ~(residual <= solved(y.dtype))
    # The rate over the second half of the way: down to the best, or to where it was given up.
    last = torch.where(failed, residuals.isfinite().sum(0).clamp(min=1) - 1, best)
    ratio = residuals[last, entries] / residuals[last // 2, entries]
    rate = torch.where(last > 1, ratio ** (1 / (last - last // 2)), torch.nan)
    if failed.any():
        found = newton_krylov(lambda x: x + branch(x), y[failed], x[failed], newton)
        x[failed], residual[failed] = found.x, found.residual
        last[failed] += found.iterations
    return ResidualPreimage(x, residual, last, residual <= solved(y.dtype), rate, failed)


@torch.no_grad()
def _fixed_point(branch: Operator, y: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
    """Iterates ``x <- y - f(x)`` for every entry until its residual no longer falls.

    Returns:
        The best ``x``, ``[batch, ...]``; the residual of every iterate, ``[iterations, batch]``,
        infinite where none was computed; and the number of the best iterate, ``[batch]``.
    """
    x, best_x = y.clone(), y.clone()
    size = or_one(norms(y))
    residuals = torch.full((iterations, len(y)), torch.inf, dtype=y.dtype, device=y.device)
    best = torch.zeros(len(y), dtype=torch.long, device=y.device)
    active = torch.arange(len(y), device=y.device)
    for k in range(iterations):
        missing = y[active] - branch(x[active]) - x[active]
        residuals[k, active] = new = norms(missing) / size[active]
        better = new < residuals[best[active], active] if k else new.isfinite()
        best[active[better]], best_x[active[better]] = k, x[active[better]]
        x[active] += missing
        active = active[
            (new > 4 * torch.finfo(y.dtype).eps) & new.isfinite() & (k - best[active] < PATIENCE)
        ]
        if not len(active):
            break
    return best_x, residuals, best


def invert_block(
    block: nn.Module, y: Tensor, mask: Tensor | None = None, newton: int = 50
) -> ResidualPreimage:
    """Finds the tokens that a block maps to ``y``: its branches are undone, the last one first.

    Args:
        block: As for :func:`branches`.
        y: Tokens, ``[batch, tokens, dim]``, of the block's dtype: float64, if it shall be exact.
        mask: As the block takes it.
        newton: Steps of Newton-Krylov at most, for each branch. Default: 50.

    Returns:
        The tokens, and for every picture: the residual of the whole block; the iterations of all
        branches; whether all converged; the largest rate; whether any branch needed Newton-Krylov.

    Raises:
        TypeError, ValueError: As for :func:`branches`.
        ValueError: No tokens of the block's dtype.
    """
    parts, dtype = branches(block, mask), next(block.parameters(), y).dtype
    if y.ndim != 3 or y.dtype != dtype:
        raise ValueError(
            f"expected tokens [batch, tokens, dim] of the block's {dtype}: got {list(y.shape)}, "
            f"{y.dtype}"
        )
    x, iterations = y, torch.zeros(len(y), dtype=torch.long, device=y.device)
    rate, needed = torch.full_like(y[:, 0, 0], torch.nan), torch.zeros_like(iterations).bool()
    for branch in reversed(parts):
        found = invert_residual(branch, x, newton=newton)
        x, iterations = found.x, iterations + found.iterations
        rate, needed = torch.fmax(rate, found.rate), needed | found.newton
    residual = relative_residual(block if mask is None else lambda x: block(x, mask), x, y)
    return ResidualPreimage(x, residual, iterations, residual <= solved(y.dtype), rate, needed)
