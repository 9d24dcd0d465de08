"""Smoothing matrices with known limits, and what they do in everybody's models."""

import math

import pytest
import torch

import minivit
from tests.vitlab.instruments.models import HEADS, MODELS, everybodys
from vitlab.instruments import between_patches, box_blur, gaussian_smoothing, mean_attention

GRID, N = (3, 4), 12


def test_gaussian_smoothing_goes_from_the_identity_to_the_mean():
    eye, mean = torch.eye(N).double(), torch.full((N, N), 1 / N, dtype=torch.float64)
    assert torch.equal(gaussian_smoothing(GRID, 0), eye)
    torch.testing.assert_close(gaussian_smoothing(GRID, 0.05), eye)
    torch.testing.assert_close(gaussian_smoothing(GRID, 1e4), mean)
    torch.testing.assert_close(gaussian_smoothing(GRID, math.inf), mean, rtol=1e-15, atol=0)
    found = gaussian_smoothing(GRID, 0.7)
    torch.testing.assert_close(found.sum(1), torch.ones(N).double())
    # From patch (1, 1), number 5: to (0, 3), number 3, five away squared, to (1, 2) one.
    known = math.exp(-(5 - 1) / (2 * 0.7**2))
    assert (found[5, 3] / found[5, 6]).item() == pytest.approx(known)


def test_a_box_is_the_mean_of_its_square_cut_off_at_the_edges():
    assert torch.equal(box_blur(GRID, 1), torch.eye(N).double())
    found = box_blur(GRID, 3)
    corner = torch.zeros(N).double()
    corner[[0, 1, 4, 5]] = 1 / 4
    assert torch.equal(found[0], corner)
    assert (found[5] > 0).nonzero().flatten().tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    torch.testing.assert_close(found.sum(1), torch.ones(N).double())


@pytest.mark.parametrize("name", MODELS)
def test_patches_of_everybodys_models_are_averaged_by_fixed_weights(name):
    model, pictures, grid = everybodys(name)
    block, attention, extra = MODELS[name][1], MODELS[name][2], MODELS[name][3]
    names = [f"{block.format(i)}.{attention}.weights" for i in range(2)]
    n = grid[0] * grid[1]
    fixed = torch.stack([gaussian_smoothing(grid, w) for w in (0, 1.0, math.inf)])
    replaced = between_patches(model, pictures, fixed)
    with torch.no_grad():
        plain = model(pictures)
        with minivit.record(model, names[0]) as seen:
            model(pictures)
            own = seen[names[0]].clone()
        with minivit.replace(model, replaced), minivit.record(model, *names) as seen:
            model(pictures)
        for weights in seen.values():
            between = weights[:, :, extra:, extra:]
            torch.testing.assert_close(between, fixed.float().expand(2, HEADS, n, n))
            assert not weights[:, :, extra:, :extra].any()
        torch.testing.assert_close(seen[names[0]][:, :, :extra], own[:, :, :extra])
        with minivit.replace(model, between_patches(model, pictures, torch.eye(n))):
            pass_through = model(pictures)
    found = [getattr(x, "logits", x) for x in (plain, pass_through, model(pictures))]
    assert torch.equal(found[0], found[2]) and not torch.allclose(found[0], found[1])


@pytest.mark.parametrize("name", ["minivit class", "timm", "huggingface"])
def test_the_mean_over_images_of_a_models_own_attention(name):
    model, pictures, _ = everybodys(name)
    names = [f"{MODELS[name][1].format(i)}.{MODELS[name][2]}.weights" for i in range(2)]
    found = mean_attention(model, pictures, batch_size=1)
    with torch.no_grad(), minivit.record(model, *names) as seen:
        model(pictures)
    for (block, mean), weights in zip(found.items(), seen.values(), strict=True):
        assert block.removesuffix(".weights") in names[0] + names[1]
        known = weights.double().mean(0, keepdim=True)
        torch.testing.assert_close(mean, known, rtol=1e-5, atol=1e-7)
    with torch.no_grad(), minivit.replace(model, found):
        one = [getattr(model(x), "logits", model(x)) for x in pictures.split(1)]
    assert all(torch.isfinite(x).all() for x in one)
