"""Inverses that are not unique: folds, collisions and closed ReLUs, on maps with known preimages."""

import pytest
import torch
from torch import nn

from tests.parity import close, draw, random
from vitlab.inversion import (
    collide_across_fold,
    collide_along,
    compare,
    find_collisions,
    hidden_directions,
    levenberg_marquardt,
    newton_krylov,
    sign_change,
)


def double(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def square(x):
    """Of the first number, and the others as they are: folded where the first is zero."""
    return torch.cat([x[:, :1] ** 2, x[:, 1:]], 1)


@pytest.mark.parametrize("solve", [newton_krylov, levenberg_marquardt])
def test_solvers_find_the_root_on_their_side_at_any_scale_and_say_where_there_is_none(solve):
    x = random(5, 3)
    x[:, 0] = x[:, 0].abs() + 0.5
    for side in 1, -1:
        mirror = x * torch.tensor([side, 1, 1])
        result = solve(square, square(x), mirror + 0.1 * random(5, 3, seed=1))
        assert result.converged.all()
        close(result.x, mirror)
    y = double([4, 1], [-1, 1], [9, 1])  # the second has no root, and disturbs no other
    result = solve(square, y, torch.ones(3, 2).double())
    assert result.converged.tolist() == [True, False, True]
    close(result.x[[0, 2], 0], torch.tensor([2.0, 3.0]).double())
    close(result.residual, (square(result.x) - y).norm(dim=1) / y.norm(dim=1))
    a, x = random(6, 6) + 4 * torch.eye(6), random(2, 6, seed=1)
    for scale in 1e-6, 1e6:
        result = solve(lambda x, b=scale * a: x @ b, scale * x @ a, torch.zeros(2, 6).double())
        close(result.x, x)


def test_levenberg_marquardt_solves_what_is_badly_conditioned_fits_more_equations_and_zeros_are_solved_for():
    q = torch.linalg.qr(random(8, 8)).Q
    a = q @ torch.diag(torch.logspace(0, -9, 8).double()) @ q.mT
    x = random(2, 8, seed=1)
    result = levenberg_marquardt(lambda x: (x @ a).sinh(), (x @ a).sinh(), torch.zeros_like(x))
    assert result.converged.all()
    assert (result.x - x).norm() / x.norm() < 1e-5  # 1e9 times rounding and more
    a, x = random(3, 5), random(2, 3, seed=1)
    result = levenberg_marquardt(lambda x: (x @ a).sinh(), (x @ a).sinh(), torch.zeros_like(x))
    assert result.converged.all()
    close(result.x, x)
    y = random(2, 5, seed=2)  # what no x gives: the least-squares fit is nearest
    result = levenberg_marquardt(lambda x: x @ a, y, torch.zeros_like(x))
    assert not result.converged.any()
    close(result.x, torch.linalg.lstsq(a.mT, y.mT).solution.mT)
    result = newton_krylov(lambda x: x**3 + x - 10, *torch.zeros(2, 1, 4).double())
    assert result.converged.all() and (result.residual < 1e-12).all()
    close(result.x, torch.full((1, 4), 2.0).double())


def test_pairs_are_measured_by_their_distances_and_a_step_along_a_nearly_flat_direction_is_no_collision():
    x = double([3, 4])
    pair = compare(square, x, x * torch.tensor([-1, 1]))
    close(pair.distance, torch.tensor([6 / 5], dtype=torch.float64))
    assert pair.output_distance == 0 and pair.found.all()
    close(pair.first_order, torch.tensor([36 / (81 + 16) ** 0.5], dtype=torch.float64))  # 2 * 3 * 6
    assert not compare(square, x, x).found.any()  # no distance
    assert not compare(square, x, x + 1).found.any()  # other outputs
    x = double([-1, -2])
    pair = compare(torch.relu, x, 3 * x)
    assert pair.output_distance == pair.first_order == 0 and pair.found.all()
    close(compare(lambda x: x.square() - 1, x.new_zeros(1, 2), x).distance, x.norm()[None])
    tokens = find_collisions(torch.relu, torch.zeros(2, 1).double(), attempts=5)
    assert tokens.found.all() and (tokens.second < 0).all()
    flat = torch.tensor([1.0, 1e-13]).double()
    pair = compare(lambda x: x * flat, torch.ones(1, 2).double(), double([1, 2]))
    assert pair.output_distance < 1e-12 < pair.distance and not pair.found
    norm, x = draw(nn.LayerNorm(12).double()), random(3, 5, 12)
    pair = compare(norm, x, x + random(3, 5, 1, seed=1))
    assert pair.found.all() and (pair.output_distance < 1e-14).all()


def test_the_mirrored_input_is_found_and_none_where_there_is_none():
    x = random(6, 4)
    x[:, 0] = 0.1
    pair = find_collisions(square, x, radius=0.5, attempts=20)
    assert pair.found.all() and (pair.output_distance < 1e-12).all()
    close(pair.second, x * torch.tensor([-1, 1, 1, 1]))
    a = random(4, 4) + 4 * torch.eye(4)
    pair = find_collisions(lambda x: (x @ a).sinh(), random(5, 4), attempts=3)
    assert not pair.found.any()
    assert torch.equal(pair.second, pair.first) and not pair.distance.any()


def test_two_signs_prove_that_a_map_is_not_injective_and_between_them_is_a_collision():
    x = double([2, 1], [1e-20, 1], [-3, 1], [-1, 1])
    change = sign_change(square, x)
    assert (change.positive, change.negative) == (0, 3) and change.margin > 1e10
    assert sign_change(lambda x: x @ random(4, 4), random(5, 4)) is None
    assert sign_change(square, x[:2]) is None  # a sign that rounding could turn is none
    x = double([1e-14, 1], [-1, 1], [2, 1], [-3, 1])
    early = sign_change(square, x, enough=1e3)  # the sign of the first is certain, and no more
    assert (early.positive, early.negative) == (2, 1) and early.margin > 1e3
    assert sign_change(square, x, enough=1e99) == sign_change(square, x)
    pair = collide_across_fold(square, double([2, 1]), double([-1, 3]), apart=0.1)
    assert pair.found.all() and pair.distance > 0.1
    close(pair.second, pair.first * torch.tensor([-1, 1]))

    def narrow(x):  # nothing comes back from farther than 0.02
        first = torch.where(x[:, :1] > -0.02, x[:, :1] ** 2, 4e-4 - (x[:, :1] + 0.02) ** 2)
        return torch.cat([first, x[:, 1:]], 1)

    pair = collide_across_fold(narrow, double([2, 1]), double([-0.01, 1]), apart=1.0)
    assert pair.found.all()
    close(pair.distance, torch.tensor([0.02]).double(), 1e-5)  # a hundredth of what was asked for


HERE = double([2, -2, 0])


def gates(x):
    """Three numbers, of which the second is seen above 1 only."""
    return torch.stack([x[:, 0], (x[:, 1] - 1).relu(), x[:, 2] + x[:, 0]], 1)


def test_closed_relus_hide_directions_along_which_a_walk_ends_where_the_relu_opens():
    (direction,) = hidden_directions(gates, HERE)
    close(direction.abs(), torch.tensor([0.0, 1.0, 0.0]).double())
    assert len(hidden_directions(gates, double([2, 3, 0]))) == 0  # open
    directions = hidden_directions(lambda x: x.sum(1, keepdim=True), HERE)
    close(directions @ directions.T, torch.eye(2).double())
    close(directions.sum(1), torch.zeros(2).double())
    window = torch.tensor([[True, False, True]])
    assert len(hidden_directions(gates, HERE, window)) == 0
    zero = hidden_directions(lambda x: 0 * x, HERE, window)
    assert len(zero) == 2 and not zero[:, 1].any()
    pair = collide_along(gates, HERE, double([0, 5, 0]))
    assert pair.found.all()
    close(pair.second[0], torch.tensor([2.0, 1.0, 0.0]).double(), 1e-7)
    assert pair.second[1, 1] < -10  # the other way it stays closed for ever
    pair = collide_along(torch.relu, double([-1, -2]), torch.eye(2).double())  # an output of zero
    assert pair.found.all() and (pair.output_distance < 1e-13).all()
    close(pair.second[0], torch.tensor([0.0, -2.0]).double(), 1e-7)
    pair = collide_along(lambda x: gates(x[:, 0]), HERE[None], double([0, 1, 0])[None])
    close(pair.second[0, 0], torch.tensor([2.0, 1.0, 0.0]).double(), 1e-7)
    smooth = lambda x: torch.stack([x[:, 0], x[:, 1] ** 2], 1)  # noqa: E731
    directions = hidden_directions(smooth, double([1, 0]))  # to first order only
    assert len(directions) == 1
    assert not collide_along(smooth, double([1, 0]), directions).found.any()
    pair = collide_along(gates, HERE, double([1, 0, 0]))
    assert not pair.found.any() and (pair.distance < 1e-12).all()
