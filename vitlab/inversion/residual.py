"""Residual branches and blocks inverted: the ``x`` for which ``x + f(x)`` is a given ``y``."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from minivit.mixer import FeedForwardBlock, MixerBlock, TokenNorm
from minivit.shapes import Tokens
from minivit.surgery import NoResidualBlock, Zero
from minivit.variants import PostNormBlock
from minivit.vit import MLP, Block, MultiHeadAttention
from vitlab.calls import expect, refuse_training
from vitlab.inversion import solvers
from vitlab.inversion.solvers import Batch, Numbers, Preimage, solved
from vitlab.krylov.methods import singular_values
from vitlab.krylov.products import Operator, linearise, norms, or_one, random_like

LARGEST = 1e6  # number in tokens, which no block comes near
PATIENCE = 50  # iterations without a smaller residual, after which the fixed point is given up
ROW_STEPS = 60  # for tokens or channels alone, from tokens near those sought


@dataclass(frozen=True, eq=False)
class ResidualPreimage(Preimage):
    """What :func:`invert_residual` and :func:`invert_block` found, and how."""

    rate: Numbers  # by which an iteration shrank the residual; NaN after fewer than three
    newton: Bool[Tensor, " batch"]  # whether Newton-Krylov was needed: the fixed point failed


@dataclass(frozen=True, eq=False)
class Branch:
    """The ``f`` of ``x + f(x)``: a norm, then attention, a mixing or an MLP."""

    norm: nn.Module
    part: nn.Module
    mask: Tensor | None

    def __call__(self, x: Tokens) -> Tokens:
        masked = isinstance(self.part, MultiHeadAttention)
        return self.part(self.norm(x), *[self.mask] * masked)

    @property
    def turned(self) -> bool:
        """Whether its rows are channels, as in a mixing that norms each alone."""
        return isinstance(self.norm, TokenNorm)

    @property
    def alone(self) -> bool:
        """Whether rows know nothing of each other, as such channels and the tokens of an MLP."""
        return self.turned or type(self.part) is MLP

    def rows(self, x: Tokens) -> Float[Tensor, "rows n"]:
        return (x.mT if self.turned else x).flatten(0, 1)

    def tokens(self, rows: Float[Tensor, "rows n"], like: Tokens) -> Tokens:
        return rows.view_as(like.mT).mT if self.turned else rows.view_as(like)

    def by_row(self, rows: Float[Tensor, "rows n"]) -> Float[Tensor, "rows n"]:
        """``x + f(x)`` of rows alone."""
        one = rows.unsqueeze(2 if self.turned else 1)
        return rows + self(one).view_as(rows)

    def nearest(self, y: Tokens, start: Tokens, steps: int) -> Preimage:
        """The ``x`` with ``x + f(x) = y`` to which the way from ``start`` leads.

        Where rows are alone, each is a small system, and one that fails leaves the others alone.
        """
        if not self.alone:
            return solvers.newton_krylov(lambda x: x + self(x), y, start, steps)
        rows = self.rows(y), self.rows(start)
        found = solvers.levenberg_marquardt(self.by_row, *rows, ROW_STEPS, 1e-3)
        of_rows = found.residual, found.iterations
        residual, taken = (numbers.view(len(y), -1).amax(1) for numbers in of_rows)
        return Preimage(self.tokens(found.x, y), residual, taken, residual <= solved(y.dtype))


def branches(block: nn.Module, mask: Tensor | None = None) -> list[Branch]:
    """The branches ``f`` of a ViT's or Mixer's block, which computes ``x + f(x)`` for each."""
    expect(not isinstance(block, NoResidualBlock), "a block x + f(x)", "one without residuals")
    if not isinstance(block, Block | MixerBlock):
        raise TypeError(f"expected a block of a ViT or Mixer: got {type(block).__name__}")
    refuse_training(block, "the block")
    norms = block.norm1, block.norm2
    lossless = not isinstance(block, PostNormBlock) or all(type(n) is nn.Identity for n in norms)
    expect(lossless, "norm='pre', or no norms", "'post', which loses part of it")
    parts = [block.attention if isinstance(block, Block) else block.mixing, block.mlp]
    if isinstance(block, FeedForwardBlock):
        parts.reverse()
    pairs = zip(norms, parts, strict=True)
    return [Branch(norm, part, mask) for norm, part in pairs if type(part) is not Zero]


def lipschitz(
    branch: Operator, x: Batch, towards: Batch, points: int = 5, steps: int = 20
) -> Numbers:
    """Estimates how much a branch stretches distances between two points, from below.

    The largest singular value of its Jacobian on the line from ``x`` to ``towards``; where it is
    below 1, the fixed point converges by this factor a step (Behrmann et al. 2019).
    """
    fraction = torch.linspace(0, 1, points, dtype=x.dtype, device=x.device)
    line = torch.lerp(x, towards, fraction.view(-1, *[1] * x.ndim)).flatten(0, 1)
    at = linearise(branch, line)
    largest = singular_values(at.push, at.pull, random_like(line), steps).values[:, 0]
    return largest.view(points, -1).amax(0)


def invert_residual(
    branch: Operator, y: Batch, iterations: int = 1000, newton: int = 50
) -> ResidualPreimage:
    """Finds ``x`` with ``x + f(x) = y``, to about 12 digits in float64 and six in float32.

    By the fixed-point iteration ``x <- y - f(x)`` from ``x = y``; where it does not converge, by at
    most ``newton`` steps of :func:`~vitlab.inversion.solvers.newton_krylov`.
    """
    x, residuals, best = _fixed_point(branch, y, iterations)  # residuals: [iterations, batch]
    entries = torch.arange(len(y), device=y.device)
    residual = residuals[best, entries]
    failed = ~(residual <= solved(y.dtype))
    # The rate over the second half of the way: down to the best, or to where it was given up.
    last = torch.where(failed, residuals.isfinite().sum(0).clamp(min=1) - 1, best)
    ratio = residuals[last, entries] / residuals[last // 2, entries]
    rate = torch.where(last > 1, ratio ** (1 / (last - last // 2)), torch.nan)
    if failed.any():
        root = solvers.newton_krylov(lambda x: x + branch(x), y[failed], x[failed], newton)
        x[failed], residual[failed] = root.x, root.residual
        last[failed] += root.iterations
    return ResidualPreimage(x, residual, last, residual <= solved(y.dtype), rate, failed)


@torch.no_grad()
def _fixed_point(branch: Operator, y: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
    """Iterates ``x <- y - f(x)`` for each entry until its residual no longer falls.

    Gives the best ``x``, all residuals, ``[iterations, batch]``, and the index of the best.
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
        falls = new.isfinite() & (k - best[active] < PATIENCE)
        active = active[falls & (new > 4 * torch.finfo(y.dtype).eps)]
        if not len(active):
            break
    return best_x, residuals, best


def usual(tokens: Tokens) -> Tokens:
    """The same tokens; refused where no block gives such numbers."""
    largest = tokens.abs().max().item()
    expect(largest < LARGEST, f"tokens such as a block gives, below {LARGEST:g}", f"{largest:g}")
    return tokens


def invert_block(
    block: nn.Module,
    y: Tokens,
    mask: Tensor | None = None,
    newton: int = 50,
    start: Tokens | None = None,
) -> ResidualPreimage:
    """Finds the tokens that a block maps to ``y``: its branches are undone, the last one first.

    With ``start``, tokens near those sought, no fixed point is tried: each branch is solved from
    what they become there.
    """
    x = usual(y)
    iterations = torch.zeros(len(y), dtype=torch.long, device=y.device)
    rate = torch.full_like(y[:, 0, 0], torch.nan)
    needed = torch.full_like(iterations, start is not None).bool()
    ways = branches(block, mask)
    near = [] if start is None else [start]
    for branch in ways[:-1] if near else ():
        near.append(near[-1] + branch(near[-1]))
    for branch in reversed(ways):
        if near:
            inverse = branch.nearest(x, near.pop(), newton)
        else:
            inverse = undone = invert_residual(branch, x, newton=newton)
            rate, needed = torch.fmax(rate, undone.rate), needed | undone.newton
        x = inverse.x
        iterations = iterations + inverse.iterations
    residual = solvers.relative_residual(block if mask is None else lambda x: block(x, mask), x, y)
    return ResidualPreimage(x, residual, iterations, residual <= solved(y.dtype), rate, needed)
