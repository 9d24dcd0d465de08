"""The inverse of an MLP's ``x + f(x) = y`` on tokens, learned in closed form, then made exact."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from minivit.hybrid import to_map
from minivit.shapes import Tokens
from minivit.vit import MLP
from vitlab.inversion.residual import Branch
from vitlab.inversion.solvers import levenberg_marquardt
from vitlab.krylov.products import jacobian

ROUNDS = 2  # of regression after the first
RIDGE = 1e-5  # added to the variance of the standardised features
HELD_OUT = 6  # one in so many tokens is for the error alone
FLOOR = 1e-4  # of the error's mean variance, added to every direction
NOISE = torch.logspace(-0.5, -4, 6)  # of the size of y, allowed in each annealing step
STEPS = 25  # to a solution
SOLVED = 2e-5  # relative residual, in float32

Rows = Float[Tensor, "n dim"]


def ridge(rows: Tensor, wanted: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """The matrix and constant that give what is wanted from rows, [k, n] and [k, m]."""
    mean, typical = rows.mean(0), wanted.mean(0)
    scale = (rows - mean).square().mean(0).sqrt().clamp(min=1e-6)
    standard = (rows - mean) / scale
    gram = (standard.mT @ standard).double()
    gram.diagonal().add_(strength * len(rows))
    matrix = torch.linalg.solve(gram, (standard.mT @ (wanted - typical)).double()).float()
    matrix = matrix / scale[:, None]
    return matrix, typical - mean @ matrix


def around(tokens: Tokens, rows: int) -> Tensor:
    """The tokens of a grid, each with the eight around it, at the edge with itself again."""
    wider = F.pad(to_map(tokens, rows), (1, 1, 1, 1), mode="replicate")
    return F.unfold(wider, 3).mT  # [batch, places, 9 dim]


class TokenInverse:
    """Learns from tokens ``x`` and ``y = x + f(x)``, in float32, to find ``x`` where ``f`` is wild.

    Rounds of ridge regression read ``x`` off ``y`` and off what the MLP computes at the round
    before. Their error on tokens held out is the prior with which ``x`` is then sought.
    """

    def __init__(self, branch: Branch, x: Rows, y: Rows) -> None:
        self.branch, self.maps = branch, list[tuple[Tensor, Tensor]]()
        held = len(x) // HELD_OUT
        for _ in range(1 + ROUNDS):
            self.maps.append(ridge(self._features(y[held:], self.maps), x[held:], RIDGE))
        error = x[:held] - self(y[:held])
        covariance = (error.mT @ error / held).double()
        covariance.diagonal().add_(FLOOR * covariance.diagonal().mean())
        self.scale = torch.linalg.cholesky(covariance).float()

    def __call__(self, y: Rows) -> Rows:
        matrix, constant = self.maps[-1]
        return self._features(y, self.maps[:-1]) @ matrix + constant

    def _features(self, y: Rows, maps: list[tuple[Tensor, Tensor]]) -> Tensor:
        features = y
        for matrix, constant in maps:
            x = features @ matrix + constant
            h, mlp = self.branch.norm(x), self.branch.part
            assert isinstance(mlp, MLP)  # for mypy
            hidden = mlp.activation(mlp.up(h))
            features = torch.cat([y, x, h, hidden], 1)
        return features

    @torch.no_grad()
    def solve(self, y: Rows) -> tuple[Rows, Bool[Tensor, " n"]]:
        """The tokens, sought from the learned ones with less and less allowed noise, if found."""
        start = self._annealed(y, self(y))
        found = levenberg_marquardt(self.branch.by_row, y, start, STEPS, 1e-3)
        return found.x, found.residual <= SOLVED

    def _annealed(self, y: Rows, start: Rows) -> Rows:
        """Minimises ``|y - x - f(x)|² / noise² + |z|²`` for ``x = start + L z``, noise falling."""
        z, size = torch.zeros_like(start), y.square().mean(1, keepdim=True).sqrt()

        def missing(z: Rows) -> Rows:
            return y - self.branch.by_row(start + z @ self.scale.mT)

        for noise in NOISE:
            noise = noise * size
            matrices = jacobian(self.branch.by_row, start + z @ self.scale.mT) @ self.scale
            matrices = matrices / noise[..., None]
            gram = matrices.mT @ matrices
            gram.diagonal(dim1=1, dim2=2).add_(1)
            slope = matrices.mT @ (missing(z) / noise)[..., None] - z[..., None]
            step = torch.cholesky_solve(slope, torch.linalg.cholesky_ex(gram).L)[..., 0]

            def cost(z: Rows, noise: Tensor = noise) -> Tensor:
                return ((missing(z) / noise).square() + z.square()).sum(1, keepdim=True)

            before, done = cost(z), torch.zeros_like(size).bool()
            for length in (1, 1 / 3, 1 / 9, 1 / 27, 1 / 81):
                trial = z + length * step
                lower = (cost(trial) < before) & ~done
                z, done = torch.where(lower, trial, z), done | lower
        return start + z @ self.scale.mT
