"""Spectral densities of known matrices, and lines and planes through a small model's weights."""

import math

import torch

import minivit
from tests.parity import close
from tests.vitlab.instruments.test_curvature import LABELS, flat, images, loss_of, normed, small
from tests.vitlab.test_krylov import symmetric, times
from vitlab.instruments import density, filter_normalised, landscape
from vitlab.instruments.density import quadrature
from vitlab.instruments.weights import WeightLoss
from vitlab.krylov import random_like

KNOWN = torch.cat([torch.full((30,), -2.0), torch.zeros(50), torch.full((20,), 3.0)]).double()
PRODUCT = times(symmetric(KNOWN[None]))


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
