"""Spectra of Jacobians and Hessians that are known, and the loss around a small model's weights."""

import math

import pytest
import torch
from torch import nn

import minivit
from tests.parity import close, random
from tests.vitlab.instruments.test_curvature import LABELS, flat, images, loss_of, normed, small
from tests.vitlab.test_krylov import symmetric, times
from vitlab.calls import sublayer
from vitlab.instruments import WeightLoss, density, filter_normalised, landscape, spectrum
from vitlab.instruments.spectra import quadrature
from vitlab.krylov import random_like

VALUES = torch.tensor([4.0, 2.0, 1.0, 1e-3, 0.0]).double()


def known(x):
    """At every point the singular values VALUES, and five rows for five columns."""
    u, v = (torch.linalg.qr(random(5, 5, seed=seed)).Q for seed in (1, 2))
    return x @ (u @ torch.diag(VALUES) @ v.mT)


@pytest.mark.parametrize(("rows", "columns"), [(30, 50), (50, 30), (40, 40)])
def test_lanczos_agrees_with_the_whole_jacobian_at_both_ends(rows, columns):
    a = random(rows, columns)

    def function(x):
        return (x @ a.mT).sin()

    x = random(2, columns, seed=1)
    dense, sparse = spectrum(function, x, dense=True), spectrum(function, x, dense=False)
    assert dense.shape == sparse.shape == (rows, columns)
    close(sparse.values, dense.values, 1e-8)  # as many steps as there are
    few = spectrum(function, x, dense=False, steps=25)
    assert few.values.shape[1] == 25
    close(few.values[:, 0], dense.values[:, 0], 1e-3)
    assert (few.condition <= dense.condition * (1 + 1e-9)).all()
    with pytest.raises(ValueError, match=r"all \d+ singular values for a rank: got 25"):
        few.rank()
    large = spectrum(lambda x: 2 * x, random(1, 5000), steps=3)  # goes to Lanczos by itself
    close(large.values, torch.full((1, 3), 2.0).double())


@pytest.mark.parametrize("dense", [True, False])
def test_modules_that_work_in_place_are_taken_where_they_are_and_change_nothing(dense):
    model, x = nn.Sequential(nn.ELU(inplace=True), nn.Flatten()).eval(), random(2, 6)
    before, expected = x.clone(), x.clamp(max=0).exp().sort(1, descending=True).values
    for function in model, sublayer(model, "0", x.clone())[0]:
        close(spectrum(function, x, dense=dense).values, expected)
    assert torch.equal(x, before)


def test_known_singular_values_give_known_ranks_and_in_half_precision_the_digits_it_has():
    found = spectrum(known, random(3, 5))
    close(found.values, VALUES.expand(3, -1))
    assert found.shape == (5, 5) and not found.errors.any()
    assert found.rank().tolist() == [4] * 3 and found.rank(0.01).tolist() == [3] * 3
    assert (found.condition > 1e14).all()
    for dtype, digits in (torch.float16, 0.005), (torch.bfloat16, 0.03):
        for dense in True, False:
            x = random(2, 5).to(dtype)
            found = spectrum(lambda x: known(x.double()).to(x.dtype), x, dense=dense)
            assert found.values.dtype == found.errors.dtype == dtype
            close(found.values.double(), VALUES.expand(2, -1), digits)
        assert found.rank().tolist() == [3, 3]  # of 4, 2, 1, 0.001 and 0


EIGENVALUES = torch.cat([torch.full((30,), -2.0), torch.zeros(50), torch.full((20,), 3.0)]).double()
PRODUCT = times(symmetric(EIGENVALUES[None]))


def test_three_eigenvalues_are_found_with_the_share_of_each():
    found = quadrature(PRODUCT, torch.zeros(1, 100).double(), probes=200, steps=3)
    close(found.points, torch.tensor([-2.0, 0, 3]).double().expand(200, -1), 1e-8)
    close(found.shares.sum(1), torch.ones(200).double())
    shares = found.shares.mean(0)
    torch.testing.assert_close(shares, torch.tensor([0.3, 0.5, 0.2]).double(), rtol=0, atol=0.02)
    assert found.errors.max() < 1e-8
    below = found.below(-0.5)
    assert abs(below.mean - 0.3) < below.half < 0.02
    assert abs(found.negative.mean - 0.5) < 2 * found.negative.half < 0.04


def test_the_interval_covers_the_truth_as_often_as_it_says():
    inside = 0
    for seed in range(200):
        of = quadrature(PRODUCT, torch.zeros(1, 100).double(), 4, 3, seed).below(-0.5)
        inside += abs(of.mean - 0.3) <= of.half
    assert 180 <= inside <= 199
    assert math.isnan(quadrature(PRODUCT, torch.zeros(1, 100).double(), 1, 3).below().half)


def test_the_density_of_a_network_is_that_of_its_matrix():
    model, x = small(), images()
    loss = WeightLoss(model, x, LABELS)
    for gauss_newton, product in (False, loss.hessian()), (True, loss.gauss_newton()):
        found = density(model, x, LABELS, probes=3, steps=10, gauss_newton=gauss_newton)
        close(found.shares, quadrature(product, loss.point, 3, 10).shares)
        assert (found.negative.mean > 0.05) != gauss_newton


def test_the_loss_at_every_place_is_that_of_the_moved_weights():
    model, x = small(), images()
    found, known, w = landscape(model, x, LABELS, points=3), loss_of(model, x, LABELS), flat(model)
    assert found.loss.shape == (3, 3) and found.directions.shape == (2, 43)
    close(found.offsets, torch.tensor([-1.0, 0, 1]).double())
    first, second = found.directions
    close(found.loss[2, 0], known(w + first - second))
    close(found.loss[1, 1], known(w))
    line = landscape(model, x, LABELS, directions=first[None], radius=0.5, points=5)
    close(line.loss, torch.stack([known(w + t * first) for t in line.offsets]))


def test_random_directions_have_the_models_lengths_filter_by_filter_and_leave_the_rest():
    model, x = normed(), images()
    loss = WeightLoss(model, x, LABELS)
    for seed in 0, 1:
        direction = filter_normalised(loss, random_like(loss.point, seed))
        parts, own = loss.split(direction), dict(model.named_parameters())
        for name in "0.weight", "4.weight":
            close(parts[name].flatten(1).norm(dim=1), own[name].flatten(1).norm(dim=1))
        for name in "0.bias", "1.weight", "1.bias", "4.bias":
            assert not parts[name].any()
    drawn = landscape(model, x, LABELS, points=3).directions
    close(drawn[:1], filter_normalised(loss, random_like(loss.point, 0)))
    assert not torch.allclose(drawn[0], drawn[1])
    model = minivit.create("vit_8px", depth=1, dim=8, heads=2, pool="class").double().eval()
    model.head.weight.data[0] = 0
    loss = WeightLoss(model, torch.rand(2, 1, 8, 8).double(), torch.tensor([0, 1]))
    parts = loss.split(filter_normalised(loss, random_like(loss.point)))
    assert not parts["class_token"].any()  # is no filter, and a filter of zero stays
    assert not parts["head.weight"][0].any() and parts["head.weight"].isfinite().all()
