"""A mixing ``x + f(x) = y`` solved exactly, and its several solutions on the sides of its folds."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from minivit.shapes import Tokens
from vitlab.inversion.chain import channel_matrices, normed
from vitlab.inversion.residual import Branch
from vitlab.inversion.solvers import relative_residual, solved
from vitlab.krylov.products import random_like

STEPS = 25  # of Newton, from each start
SHORTEST = 3e-4  # of a step, below which a start is given up
DIRECTIONS = 4  # in which a fold is looked for: those that the map shrinks most
ROUNDS = 8  # of inverse iteration, to find them
SLACK = 0.25  # singular value, above which no fold is near
STUCK = 2  # of these directions, in which to go on where Newton's method is stuck
DEPTH = 3  # folds crossed one after another
SAME = 1e-7  # relative distance, below which two solutions are one
APART = 8e-3  # of the root mean square, how far apart a second derivative is taken

Point = Float[Tensor, "tokens dim"]


class Factored:
    """The Jacobian of ``x + f(x)`` at the tokens of one image, factored.

    A mixing's own Jacobian is a matrix for each channel, ``A``. Its norm ties the channels together
    by two numbers for each token, so that Woodbury's identity (1950) leaves one more system of
    twice as many equations as there are tokens.
    """

    def __init__(self, branch: Branch, x: Tokens) -> None:
        self.h, scale = normed(branch, x[0])
        self.tokens, self.dim = self.h.shape
        a = channel_matrices(branch, self.h) / scale.mT
        a.diagonal(dim1=1, dim2=2).add_(1)
        self.inverse = torch.linalg.inv(a)  # [dim, tokens, tokens]
        self.rest = torch.eye(self.tokens).to(a) - self.inverse
        h = self.h.mT  # [dim, tokens]
        right = torch.einsum("cst,ct->st", self.rest, h)
        left = torch.einsum("cst,cs->st", self.rest, h)
        both = torch.einsum("cst,cs,ct->st", self.rest, h, h)
        blocks = [self.rest.sum(0), right], [left, both]
        small = -torch.cat([torch.cat(row, 1) for row in blocks]) / self.dim
        small.diagonal().add_(1)
        self.small = torch.linalg.lu_factor(small)

    def solve(self, r: Point) -> Point:
        """The ``v`` with ``J v = r``."""
        z = torch.einsum("cst,tc->sc", self.inverse, r)
        return z + torch.einsum("cst,tc->sc", self.rest, self._norm(z, False))

    def solve_transposed(self, r: Point) -> Point:
        """The ``u`` with ``J^T u = r``."""
        z = torch.einsum("cst,sc->tc", self.rest, r) / self.dim
        return torch.einsum("cst,sc->tc", self.inverse, r + self.dim * self._norm(z, True))

    def _norm(self, z: Point, transposed: bool) -> Point:
        """What the norm takes away: each token's mean, and its part along the normed token."""
        ends = torch.cat([z.sum(1), (self.h * z).sum(1)])[:, None]
        ends = torch.linalg.lu_solve(*self.small, ends, adjoint=transposed)
        return (ends[: self.tokens] + ends[self.tokens :] * self.h) / self.dim

    def smallest(self, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """The ``k`` smallest singular values, ``J v = s u``: u, s, v, by inverse iteration."""
        v = random_like(self.h.new_empty(k, *self.h.shape))
        for _ in range(ROUNDS):
            u, _ = _orthonormal(torch.stack([self.solve_transposed(each) for each in v]))
            v, triangle = _orthonormal(torch.stack([self.solve(each) for each in u]))
        left, values, right = torch.linalg.svd(triangle)  # J^-1 u = v triangle
        return _mixed(u, right.mT), 1 / values, _mixed(v, left)


def _orthonormal(vectors: Float[Tensor, "k ..."]) -> tuple[Tensor, Tensor]:
    q, triangle = torch.linalg.qr(vectors.flatten(1).mT)
    return q.mT.view_as(vectors), triangle


def _mixed(vectors: Float[Tensor, "k ..."], matrix: Float[Tensor, "k k"]) -> Tensor:
    return torch.einsum("kij,kl->lij", vectors, matrix)


@torch.no_grad()
def newton(branch: Branch, y: Tokens, x: Tokens) -> tuple[Tokens, float]:
    """Newton's method for one image by exact directions: where it ends, and the residual there."""

    def missing(x: Tokens) -> float:
        return relative_residual(lambda x: x + branch(x), x, y).item()

    residual = missing(x)
    for _ in range(STEPS):
        if residual < 1e-13:
            break
        step = Factored(branch, x).solve((y - x - branch(x))[0])
        length = 1.0
        while length > SHORTEST:
            new = missing(x + length * step)
            if new < (1 - 0.01 * length) * residual:
                break
            length /= 2
        else:
            break
        x, residual = x + length * step, new
    return x, residual


@torch.no_grad()
def solutions(
    branch: Branch, y: Tokens, start: Tokens, distance: Callable[[Tokens], float], most: int
) -> list[Tokens]:
    """Solutions ``x`` of ``x + f(x) = y`` for one image, after ``most`` starts.

    The first start is given. A solution ``x`` at a small singular value ``s`` of the Jacobian, with
    ``J v = s u`` and ``q = u . f''[v, v]``, has a twin near ``x - 2 s / q v``. Where Newton's
    method is stuck, at ``r`` from ``y``, they are near ``x + t v`` with ``q t² / 2 + s t = u . r``.
    Of these starts the nearest by ``distance`` is tried next.
    """
    waiting, found, left = [(start, 0)], list[Tokens](), most
    while waiting and left:
        waiting.sort(key=lambda each: distance(each[0]))
        x, depth = waiting.pop(0)
        x, residual = newton(branch, y, x)
        left -= 1
        solution = residual < 10 * solved(y.dtype)
        known = solution and any((x - other).norm() < SAME * x.norm() for other in found)
        if solution and not known:
            found.append(x)
        if not known and depth < DEPTH and x.isfinite().all():
            waiting += [(x + t * v, depth + 1) for t, v in _across(branch, y, x, solution)]
    return found


def _across(branch: Branch, y: Tokens, x: Tokens, solution: bool) -> list[tuple[float, Tensor]]:
    """Where the solutions across the nearest folds are, seen from ``x``: lengths, directions."""
    apart = APART * x.square().mean().sqrt().item()
    here, starts = x + branch(x), []
    for k, (u, s, v) in enumerate(zip(*Factored(branch, x).smallest(DIRECTIONS), strict=True)):
        ahead, behind = (at + branch(at) for at in (x + apart * v, x - apart * v))
        q = (u * (ahead + behind - 2 * here)).sum().item() / apart**2
        slope = (u * (ahead - behind)).sum().item() / (2 * apart)
        if s < SLACK and abs(q) > 1e-12:
            starts.append((-2 * slope / q, v))
        if not solution and k < STUCK and abs(q) > 1e-12:
            discriminant = slope**2 + 2 * q * (u * (y - here)).sum().item()
            root = math.sqrt(max(discriminant, 0.0))
            starts += [((-slope + sign * root) / q, v) for sign in ((1, -1) if root else (0,))]
    return starts
