"""Chapter 17: models made of parts, and what their Jacobians and tokens have in common."""

from functools import partial

import torch
from torch import Tensor

from course.check.attempt import Attempt, Draw, Outcomes, normal_draws
from course.check.chapter_10 import fitted
from course.check.exercise import exercise


@exercise("parts")
def main_effects(attempt: Attempt) -> None:
    """results [2] * k -> the main effect of each of k parts, [k]."""
    outcomes = {
        torch.tensor([2.0]): "With one part, 3 without it and 5 with it, its effect is 2.",
        torch.tensor([-2.0]): "The sign is wrong: with the part (index 1) minus without it (index "
        "0).",
        torch.tensor([1.0]): "This is half of the effect: with the part minus the mean of all.",
        torch.tensor([5.0]): "This is the result with the part. Subtract that without it.",
    }
    attempt.expect_close(attempt(torch.tensor([3.0, 5.0])), outcomes)
    for k in (2, 4):
        results = normal_draws(seed=k)(*[2] * k)
        halves = [[results.select(axis, state) for state in (0, 1)] for axis in range(k)]
        effects = torch.stack([high.mean() - low.mean() for low, high in halves])
        outcomes = {
            effects: f"With {k} parts the effects are wrong.",
            effects.flip(0): "The parts are in the wrong order. Axis 0 is the first.",
            effects * 2 ** (k - 1): "The differences are summed over other parts. Take their mean.",
            torch.stack([(high - low).flatten()[0] for low, high in halves]): "This is what each "
            "part does in a host with no other trained part. Take the mean over all states of the "
            "others.",
            torch.stack([(high - low).flatten()[-1] for low, high in halves]): "This is what each "
            "part adds when all others are trained. Take the mean over all states of the others.",
        }
        attempt.expect_close(attempt(results), outcomes)


@exercise("other, tokens, e", seed=3)
def stitched(attempt: Attempt, normal: Draw) -> None:
    """source [batch, tokens, d], target [batch, tokens, e], new [other, tokens, d], ridge."""
    batch, tokens, d, e, other = 7, 4, 3, 5, 2
    source, new, weight = normal(batch, tokens, d), normal(other, tokens, d), normal(d, e)
    source = source - source.mean((0, 1))
    centred = new - new.mean((0, 1))
    outcomes = {
        centred @ weight: "Where the target is a matrix times the source, without a shift and a "
        "penalty, new tokens should go through that matrix."
    }
    attempt.expect_close(attempt(source, source @ weight, centred, 0.0), outcomes)
    shift, offset = normal(e), normal(d)
    moved = source + offset
    target = moved @ weight + shift
    outcomes = {
        new @ weight + shift: "With a shift in the target and a mean in the source the result is "
        "wrong.",
        (new - offset) @ weight: "The target's mean is not added at the end.",
        new @ weight + target.mean((0, 1)): "The source's mean must be taken from new tokens too.",
        centred @ weight + target.mean((0, 1)): "The new tokens' own mean is taken from them. It "
        "is the source's that the map was fitted with.",
        new @ torch.linalg.lstsq(moved.flatten(0, 1), target.flatten(0, 1)).solution: "There is no "
        "shift b: fit it, or take the means away first.",
    }
    attempt.expect_close(attempt(moved, target, new, 0.0), outcomes)
    noisy = target + normal(batch, tokens, e)
    ridge = 6.0
    x, y = moved.flatten(0, 1), noisy.flatten(0, 1)
    by = partial(fitted, x, y, at=new)
    table = torch.cat([x, torch.ones(len(x), 1)], 1)
    all_alike = torch.linalg.solve(table.T @ table + ridge * torch.eye(d + 1), table.T @ y)
    apart = [fitted(moved[:, t], noisy[:, t], ridge, at=new[:, t]) for t in range(tokens)]
    outcomes = {
        by(ridge): f"With ridge = {ridge:g} the result is wrong.",
        torch.stack(apart, 1): "Each token has a map of its own. All share one.",
        by(0.0): "ridge is not used.",
        by(ridge**2): "ridge is squared.",
        by(ridge * len(x)): "ridge is multiplied by the number of tokens. The formula has a sum.",
        by(ridge / len(x)): "ridge is divided by the number of tokens. The formula has a sum.",
        new @ all_alike[:-1] + all_alike[-1]: "The shift is penalised too.",
    }
    attempt.expect_close(attempt(moved, noisy, new, ridge), outcomes)


@exercise("out, weights", seed=1)
def by_weights(attempt: Attempt, normal: Draw) -> None:
    """behind [out, tokens, dim], patches [tokens, n] -> [out, dim * n]."""
    out, tokens, dim, n = 2, 4, 3, 5
    behind, patches = normal(out, tokens, dim), normal(tokens, n)
    first = torch.zeros(tokens, 1)
    first[0] = 1

    def jacobian(behind: Tensor, patches: Tensor, order: str = "oij") -> Tensor:
        return torch.einsum(f"oti,tj->{order}", behind, patches).reshape(out, dim * n)

    only = patches * first
    outcomes = {
        jacobian(behind, only): "With one patch that is not zero the result is wrong. It should be "
        "K_oi a_j.",
        jacobian(behind, only, "oji"): "The entries of W are read column by column. Read them row "
        "by row: entry [i, j] belongs at i * n + j.",
        jacobian(behind.sum(1, keepdim=True), only.sum(0, keepdim=True)): "The sums are taken "
        "before the product. Each patch meets its own part of behind.",
        jacobian(behind, only) / tokens: "The mean is taken over the patches. Each adds its part.",
    }
    attempt.expect_close(attempt(behind, only), outcomes)
    outcomes = {
        jacobian(behind, patches): "With several patches the result is wrong. Sum over them.",
        jacobian(behind, only): "Only the first patch is used.",
    }
    attempt.expect_close(attempt(behind, patches), outcomes)


@exercise(seed=2)
def partial_correlation(attempt: Attempt, normal: Draw) -> None:
    """x, y, z [n] -> Pearson's correlation of x and y without what is linear in z."""
    n = 9
    basis = torch.linalg.qr(torch.cat([torch.ones(n, 1), normal(n, 3)], 1)).Q.T
    z, u, v = basis[1:]  # of mean 0, length 1, orthogonal
    x, y = 2 * u, 3 * (0.6 * u + 0.8 * v)
    outcomes: Outcomes = {
        0.6: "Where neither x nor y depends on z, and all have mean 0, this is their correlation.",
        3.6 / n: "This is the covariance. Divide by the lengths too.",
        -0.6: "The sign is wrong.",
        0.36: "This is the squared correlation.",
    }
    attempt.expect_close(attempt(x, y, z), outcomes)
    x, y = x + 4 * z, y - 3 * z

    def plain(x: Tensor, y: Tensor) -> Tensor:
        return torch.corrcoef(torch.stack([x, y]))[0, 1]

    outcomes = {
        0.6: "With x and y that depend on z the result is wrong.",
        plain(x, y): "z is not used: this is the plain correlation.",
        plain(x - 4 * z, y): "z is taken only from x. Take it from y too.",
        plain(x, y + 3 * z): "z is taken only from y. Take it from x too.",
    }
    attempt.expect_close(attempt(x, y, z), outcomes)
    outcomes = {
        0.6: "With a z of another length the result is wrong. Divide x . z by z . z.",
        plain(x - 5 * z, y - 5 * z): "z is subtracted without a slope.",
    }
    attempt.expect_close(attempt(x, y, 5 * z), outcomes)
    said = "With vectors whose mean is not 0 the result is wrong. Subtract the means of all three."
    attempt.expect_close(attempt(x + 1, y - 2, z + 3), {0.6: said})
