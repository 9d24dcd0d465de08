"""Spectral densities of matrices with known eigenvalues, and of a small network."""

import math

import pytest
import torch

from tests.vitlab.instruments.models import close
from tests.vitlab.instruments.test_curvature import LABELS, dense, flat, images, loss_of, small
from vitlab.instruments import density
from vitlab.instruments.density import quadrature
from vitlab.instruments.weights import WeightLoss


def operator_of(values):
    g = torch.Generator().manual_seed(1)
    Q = torch.linalg.qr(torch.randn(len(values), len(values), generator=g).double()).Q
    A = Q @ torch.diag(values) @ Q.T
    return lambda v: v @ A


KNOWN = torch.cat([torch.full((30,), -2.0), torch.zeros(50), torch.full((20,), 3.0)]).double()


def test_three_eigenvalues_are_found_with_the_share_of_each():
    found = quadrature(operator_of(KNOWN), torch.zeros(1, 100).double(), probes=200, steps=3)
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
        of = quadrature(operator_of(KNOWN), torch.zeros(1, 100).double(), 4, 3, seed).below(-0.5)
        inside += abs(of.mean - 0.3) <= of.half
    assert 180 <= inside <= 199
    assert math.isnan(
        quadrature(operator_of(KNOWN), torch.zeros(1, 100).double(), 1, 3).below().half
    )


@pytest.mark.parametrize("gauss_newton", [False, True])
def test_the_density_of_a_network_has_the_moments_of_its_matrix(gauss_newton):
    model, x = small(), images()
    H = torch.func.hessian(loss_of(model, x, LABELS))(flat(model))
    found = density(model, x, LABELS, probes=300, steps=10, gauss_newton=gauss_newton)
    if gauss_newton:
        H = dense(WeightLoss(model, x, LABELS).gauss_newton(), len(H))
        assert found.negative.mean < 1e-6
    else:
        known = torch.linalg.eigvalsh(H)
        share = known.clamp(max=0).abs().sum() / known.abs().sum()
        assert abs(found.negative.mean - share) < 0.03 and share > 0.05
    for power, known in (1, H), (2, H @ H):
        moment = (found.shares * found.points**power).sum(1)
        assert abs(moment.mean() - known.diagonal().mean()) < 4 * moment.std() / 300**0.5
