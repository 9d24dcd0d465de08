"""Inverses that are not unique: MLPs, folds and collisions, on maps whose preimages are known."""

import pytest
import torch
from torch import nn

import minivit
from minivit.vit import MLP
from tests.parity import draw
from tests.refusals import assert_refused
from tests.vitlab.inversion.contracting import close as nearly
from tests.vitlab.inversion.contracting import random
from vitlab.inversion import (
    collide_across_fold,
    compare,
    find_collisions,
    levenberg_marquardt,
    newton_krylov,
    sign_change,
)
from vitlab.krylov import jacobian


def close(a, b, tolerance=1e-10):
    nearly(a, b, tolerance)


def mlp(dim=8):
    return draw(MLP(dim, 4 * dim).double().eval())


def attention(dim=6, heads=2):
    return draw(minivit.MultiHeadAttention(dim, heads).double().eval())


def square(x):
    """Of the first number, and the others as they are: folded where the first is zero."""
    return torch.cat([x[:, :1] ** 2, x[:, 1:]], 1)


SOLVERS = [newton_krylov, levenberg_marquardt]


@pytest.mark.parametrize("solve", SOLVERS)
def test_both_solvers_find_the_known_root_on_their_side(solve):
    x = random(5, 3)
    x[:, 0] = x[:, 0].abs() + 0.5
    for side in 1, -1:
        mirror = x * torch.tensor([side, 1, 1])
        found = solve(square, square(x), mirror + 0.1 * random(5, 3, seed=1))
        assert found.converged.all()
        close(found.x, mirror)


@pytest.mark.parametrize("solve", SOLVERS)
def test_what_has_no_solution_has_not_converged_and_disturbs_no_other(solve):
    y = torch.tensor([[4.0, 1.0], [-1.0, 1.0], [9.0, 1.0]]).double()
    found = solve(square, y, torch.ones(3, 2).double())
    assert found.converged.tolist() == [True, False, True]
    close(found.x[[0, 2], 0], torch.tensor([2.0, 3.0]).double())
    residual = (square(found.x) - y).norm(dim=1) / y.norm(dim=1)
    close(found.residual, residual)


@pytest.mark.parametrize("solve", SOLVERS)
def test_linear_equations_are_solved_at_any_scale(solve):
    a = random(6, 6) + 4 * torch.eye(6)
    for scale in 1e-6, 1e6:
        x = random(2, 6, seed=1)
        found = solve(
            lambda x, scale=scale: scale * x @ a, scale * x @ a, torch.zeros(2, 6).double()
        )
        close(found.x, x)


def test_levenberg_marquardt_solves_what_is_badly_conditioned():
    q = torch.linalg.qr(random(8, 8)).Q
    a = q @ torch.diag(torch.logspace(0, -9, 8).double()) @ q.mT
    x = random(2, 8, seed=1)
    found = levenberg_marquardt(lambda x: torch.sinh(x @ a), torch.sinh(x @ a), torch.zeros_like(x))
    assert found.converged.all()
    assert (found.x - x).norm() / x.norm() < 1e-5  # 1e9 times rounding and more


def test_levenberg_marquardt_takes_more_equations_than_unknowns_and_fits_them_best():
    a, x = random(3, 5), random(2, 3, seed=1)
    found = levenberg_marquardt(lambda x: torch.sinh(x @ a), torch.sinh(x @ a), torch.zeros_like(x))
    assert found.converged.all()
    close(found.x, x)
    y = random(2, 5, seed=2)  # what no x gives: the least-squares fit is nearest
    found = levenberg_marquardt(lambda x: x @ a, y, torch.zeros_like(x))
    assert not found.converged.any()
    close(found.x, torch.linalg.lstsq(a.mT, y.mT).solution.mT)


def test_an_output_of_zero_is_solved_for_like_any_other():
    found = newton_krylov(lambda x: x**3 + x - 10, *torch.zeros(2, 1, 4).double())
    assert found.converged.all() and (found.residual < 1e-12).all()
    close(found.x, torch.full((1, 4), 2.0).double())


def test_a_pair_is_measured_by_its_distances():
    x = torch.tensor([[3.0, 4.0]]).double()
    pair = compare(square, x, x * torch.tensor([-1, 1]))
    close(pair.distance, torch.tensor([6 / 5], dtype=torch.float64))
    assert pair.output_distance == 0 and pair.found.all()
    close(pair.first_order, torch.tensor([36 / (81 + 16) ** 0.5], dtype=torch.float64))  # 2 * 3 * 6
    assert not compare(square, x, x).found.any()  # no distance
    assert not compare(square, x, x + 1).found.any()  # other outputs


def test_of_an_output_or_an_input_that_is_zero_distances_are_absolute():
    x = torch.tensor([[-1.0, -2.0]]).double()
    pair = compare(torch.relu, x, 3 * x)
    assert pair.output_distance == pair.first_order == 0 and pair.found.all()
    pair = compare(lambda x: x.square() - 1, x.new_zeros(1, 2), x)
    close(pair.distance, x.norm()[None])
    tokens = find_collisions(torch.relu, torch.zeros(2, 1).double(), attempts=5, dense=True)
    assert tokens.found.all() and (tokens.second < 0).all()


def test_a_step_along_a_nearly_flat_direction_is_no_collision():
    flat = torch.tensor([1.0, 1e-13]).double()
    pair = compare(
        lambda x: x * flat, torch.ones(1, 2).double(), torch.tensor([[1.0, 2.0]]).double()
    )
    assert pair.output_distance < 1e-12 < pair.distance and not pair.found


def test_shifted_tokens_collide_in_layernorm():
    norm, x = draw(nn.LayerNorm(12).double()), random(3, 5, 12)
    pair = compare(norm, x, x + random(3, 5, 1, seed=1))
    assert pair.found.all() and (pair.output_distance < 1e-14).all()


@pytest.mark.parametrize("dense", [False, True])
def test_the_mirrored_input_is_found(dense):
    x = random(6, 4)
    x[:, 0] = 0.1
    pair = find_collisions(square, x, radius=0.5, attempts=20, dense=dense)
    assert pair.found.all() and (pair.output_distance < 1e-12).all()
    close(pair.second, x * torch.tensor([-1, 1, 1, 1]))


def test_none_is_found_where_there_is_none():
    a = random(4, 4) + 4 * torch.eye(4)
    pair = find_collisions(lambda x: (x @ a).sinh(), random(5, 4), attempts=3)
    assert not pair.found.any()
    assert torch.equal(pair.second, pair.first) and not pair.distance.any()


def test_mlps_have_collisions_to_twelve_digits():
    layer, x = mlp(), random(12, 8)
    pair = find_collisions(layer, x, radius=0.3, attempts=3, dense=True)
    assert pair.found.sum() >= 3
    hit = pair.found
    outputs = (layer(pair.first) - layer(pair.second)).norm(dim=1) / layer(x).norm(dim=1)
    assert (outputs[hit] < 1e-12).all() and (pair.distance[hit] > 1e-2).any()
    assert torch.equal(pair.second[~hit], x[~hit])


def test_two_signs_prove_that_a_map_is_not_injective_and_a_linear_one_has_one():
    x = torch.tensor([[2.0, 1.0], [1e-20, 1.0], [-3.0, 1.0], [-1.0, 1.0]]).double()
    found = sign_change(square, x)
    assert (found.positive, found.negative) == (0, 3)
    assert found.margin > 1e10
    assert sign_change(lambda x: x @ random(4, 4), random(5, 4)) is None
    assert sign_change(square, x[:2]) is None  # a sign that rounding could turn is none


def test_a_search_for_two_signs_ends_where_a_margin_settles_it():
    asked = []

    def noted(x):
        asked.append(len(x))
        return square(x)

    x = torch.tensor([[1e-14, 1.0], [-1.0, 1.0], [2.0, 1.0], [-3.0, 1.0]]).double()
    whole, every = sign_change(noted, x), len(asked)
    asked.clear()
    early = sign_change(noted, x, enough=1e3)  # the sign of the first is certain, and no more
    assert (early.positive, early.negative) == (2, 1) and 1e3 < early.margin <= whole.margin
    assert len(asked) == 3 * every // 4
    assert sign_change(noted, x, enough=1e99) == whole  # where none is enough, the widest


def test_across_a_fold_there_is_a_collision():
    ends = torch.tensor([[2.0, 1.0]]).double(), torch.tensor([[-1.0, 3.0]]).double()
    pair = collide_across_fold(square, *ends, apart=0.1)
    assert pair.found.all() and pair.distance > 0.1
    close(pair.second, pair.first * torch.tensor([-1, 1]))


def test_across_a_narrow_fold_a_shorter_step_finds_the_collision():
    def narrow(x):  # nothing comes back from farther than 0.02
        first = torch.where(x[:, :1] > -0.02, x[:, :1] ** 2, 4e-4 - (x[:, :1] + 0.02) ** 2)
        return torch.cat([first, x[:, 1:]], 1)

    ends = torch.tensor([[2.0, 1.0]]).double(), torch.tensor([[-0.01, 1.0]]).double()
    pair = collide_across_fold(narrow, *ends, apart=1.0)
    assert pair.found.all()
    close(pair.distance, torch.tensor([0.02]).double(), 1e-5)  # a hundredth of what was asked for


@pytest.mark.parametrize("layer", [mlp(6), attention()], ids=["mlp", "attention"])
def test_layers_fold_between_inputs_with_different_signs_and_collide_there(layer):
    x = random(20, 6) if isinstance(layer, MLP) else random(20, 4, 6)
    found = sign_change(layer, x)
    first, second = x[found.positive][None], x[found.negative][None]
    for entry, sign in (first, 1), (second, -1):
        assert torch.linalg.slogdet(jacobian(layer, entry)).sign.item() == sign
    pair = collide_across_fold(layer, first, second)
    assert pair.found.all() and pair.distance > 1e-5
    outputs = (layer(pair.first) - layer(pair.second)).norm() / layer(pair.first).norm()
    assert outputs < 1e-12 and 1000 * outputs < pair.first_order


def test_single_precision_and_equal_signs_are_refused():
    x = torch.tensor([[2.0, 1.0]]).double()
    assert_refused([
        (lambda: compare(square, x.float(), x), TypeError, "got torch.float32 and torch.float64"),
        (lambda: find_collisions(square, x.float()), TypeError, "got torch.float32"),
        (lambda: collide_across_fold(square, x, x), ValueError, r"got \[1.0, 1.0\]"),
    ])  # fmt: skip
