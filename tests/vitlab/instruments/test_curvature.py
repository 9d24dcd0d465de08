"""Curvature by the weights, against dense matrices and finite differences."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from tests.parity import close, draw
from tests.vitlab.instruments.models import CLASSES, MODELS, everybodys
from vitlab.instruments import WeightLoss, batch_maxima, curvature
from vitlab.krylov import plain_attention, random_like

N = 10  # images
LABELS = torch.arange(N) % 3


def images(n=N, seed=0):
    return torch.randn(n, 1, 2, 3, generator=torch.Generator().manual_seed(seed)).double()


def small():
    return draw(nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)).double())


def normed():
    layers = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.GELU(), nn.Flatten(), nn.Linear(4, 3)
    return draw(nn.Sequential(*layers).double())


def flat(model):
    return torch.cat([p.flatten() for p in model.parameters()])


def logits_of(model, x):
    """The logits as a function of all weights in a row."""
    named = dict(model.named_parameters())

    def function(w):
        parts = w.split([p.numel() for p in named.values()])
        weights = {n: w.view_as(p) for (n, p), w in zip(named.items(), parts, strict=True)}
        return functional_call(model, weights, x)

    return function


def loss_of(model, x, labels, smoothing=0.0):
    logits = logits_of(model, x)
    return lambda w: F.cross_entropy(logits(w), labels, label_smoothing=smoothing)


def dense(product, n):
    return torch.stack([product(row[None])[0] for row in torch.eye(n).double()], 1)


@pytest.mark.parametrize("batch_size", [N, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_and_hessian_are_those_of_the_dense_derivatives(batch_size, smoothing):
    model, x = small(), images()
    how = {"label_smoothing": smoothing, "batch_size": batch_size}
    loss, known = WeightLoss(model, x, LABELS, **how), loss_of(model, x, LABELS, smoothing)
    w = flat(model)
    for times in 1, 2:
        close(loss(times * loss.point)[0], known(times * w))
    whole = torch.func.hessian(known)(w)
    close(dense(loss.hessian(), len(w)), whole)
    some = WeightLoss(model, x, LABELS, ["1.weight", "3.bias"], **how)
    rows = torch.cat([torch.arange(24), torch.arange(40, 43)])
    close(dense(some.hessian(), 27), whole[rows][:, rows])
    assert list(some.split(some.point)) == ["1.weight", "3.bias"]


def test_the_gauss_newton_matrix_is_made_of_jacobians_and_probabilities():
    model, x = small(), images()
    w, logits = flat(model), logits_of(model, x)
    J, p = torch.func.jacrev(logits)(w), logits(w).softmax(1)  # [N, 3, n]
    middle = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    known = torch.einsum("bin,bij,bjm->nm", J, middle, J) / N
    for batch_size in N, 4:
        loss = WeightLoss(model, x, LABELS, batch_size=batch_size)
        close(dense(loss.gauss_newton(), len(w)), known)
    assert torch.linalg.eigvalsh(known)[0] > -1e-12
    hessian = dense(WeightLoss(model, x, LABELS).hessian(), len(w))
    assert (known - hessian).abs().max() > 0.01  # what the logits' own bend adds


def test_both_ends_of_the_spectrum_with_errors_that_hold_and_directions():
    model, x = small(), images()
    H = torch.func.hessian(loss_of(model, x, LABELS))(flat(model))
    known = torch.linalg.eigvalsh(H)
    for steps, tolerance in ((43, 1e-10), (12, 1e-3)):
        found = curvature(model, x, LABELS, k=3, steps=steps)
        assert (found.top[0] - known[-1]).abs() < tolerance
        assert (found.bottom[0] - known[0]).abs() < 10 * tolerance
        for values, errors in ((found.top, found.top_errors), (found.bottom, found.bottom_errors)):
            nearest = (values[:, None] - known).abs().min(1).values
            assert (nearest <= errors + 1e-10).all()
    found = curvature(model, x, LABELS, k=3, steps=43)
    close(found.top, known.flip(0)[:3])
    close(found.bottom, known[:3])
    close(found.directions @ H, found.top[:, None] * found.directions, 1e-8)
    assert curvature(model, x, LABELS, steps=43, gauss_newton=True).bottom[0] > -1e-10


def test_relative_curvature_is_of_steps_in_units_of_the_weights():
    model, x = small(), images()
    w = flat(model).detach()
    for gauss_newton in False, True:
        loss = WeightLoss(model, x, LABELS)
        matrix = dense(loss.gauss_newton() if gauss_newton else loss.hessian(), len(w))
        known = torch.linalg.eigvalsh(w.abs()[:, None] * matrix * w.abs())
        how = {"k": 3, "steps": 43, "gauss_newton": gauss_newton, "relative": True}
        close(curvature(model, x, LABELS, **how).top, known.flip(0)[:3])


def test_batch_norm_has_its_running_statistics_or_those_of_the_batch():
    model, x = normed(), images()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model.train()
    w = flat(model)
    known = torch.func.hessian(loss_of(copy.deepcopy(model).eval(), x, LABELS))(w)
    close(dense(WeightLoss(model, x, LABELS).hessian(), len(w)), known)

    def by_batch(w):
        """Written out: normalised with the mean and variance of the maps of these images."""
        a, b, scale, shift, c, d = w.split([p.numel() for p in model.parameters()])
        maps = F.conv2d(x, a.view(2, 1, 2, 2), b)
        mean, var = maps.mean((0, 2, 3), keepdim=True), maps.var((0, 2, 3), False, keepdim=True)
        maps = (maps - mean) / (var + 1e-5).sqrt() * scale.view(2, 1, 1) + shift.view(2, 1, 1)
        return F.cross_entropy(F.gelu(maps).flatten(1) @ c.view(3, 4).T + d, LABELS)

    batch = dense(WeightLoss(model, x, LABELS, batch_statistics=True).hessian(), len(w))
    close(batch, torch.func.hessian(by_batch)(w), 1e-8)
    assert (batch[8:10].abs() < 1e-8).all()  # a bias before the norm changes nothing
    assert model.training and all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_models_have_products_that_finite_differences_confirm(name):
    model, pictures, _ = everybodys(name)
    model, pictures = model.double().train(), pictures.double()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    labels = torch.tensor([1, CLASSES - 1])
    loss = WeightLoss(model, pictures, labels)
    v, h = random_like(loss.point, 1), 1e-5
    v = v / v.norm()
    gradient = torch.func.grad(lambda w: loss._share((pictures, labels), w).sum())
    with plain_attention():
        known = (gradient(loss.point + h * v) - gradient(loss.point - h * v)) / (2 * h)
    torch.testing.assert_close(loss.hessian()(v), known, rtol=1e-4, atol=1e-6)
    assert model.training and all(torch.equal(before[k], x) for k, x in model.state_dict().items())
    assert curvature(model, pictures, labels, steps=3, k=1).top.item() > 0


def test_maxima_are_those_of_each_full_mini_batch_by_absolute_value():
    model, x = small(), images()
    found = batch_maxima(model, x, LABELS, k=4, batch_size=4, steps=43)
    assert found.values.shape == found.errors.shape == (2, 4)
    for i, row in enumerate(found.values):
        part = slice(4 * i, 4 * i + 4)
        H = torch.func.hessian(loss_of(model, x[part], LABELS[part]))(flat(model))
        known = torch.linalg.eigvalsh(H)
        close(row, known[known.abs().argsort(descending=True)[:4]], 1e-8)
    assert found.negative == (found.values < 0).double().mean() > 0
    assert found.positive == pytest.approx(found.values[found.values > 0].mean().item())
