import math

import numpy as np
import pytest
import torch

from vitlab.training.augment import (
    augment,
    cutout,
    distort,
    mixup,
    recolour,
    shift_and_flip,
    transform,
)
from vitlab.training.recipe import Recipe

STRONG = Recipe(shift=0.25, flip=True, operations=3, magnitude=1.0, cutout=0.3)


def pictures(batch=12, channels=3, height=10, width=14):
    return torch.rand(batch, channels, height, width, generator=torch.Generator().manual_seed(1))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_batch_keeps_its_shape_and_range_and_depends_on_the_seed_alone(channels):
    x = pictures(channels=channels)
    y = augment(x, STRONG, seeded())
    assert y.shape == x.shape and y.min() >= 0 and y.max() <= 1 and y.isfinite().all()
    assert torch.equal(x, pictures(channels=channels))
    assert torch.equal(y, augment(x, STRONG, seeded()))
    assert not torch.equal(y, augment(x, STRONG, seeded(1)))
    assert all(not torch.equal(a, b) for a, b in zip(x, y, strict=True))


def test_strength_zero_gives_the_same_bits():
    x = pictures()
    for changes in {}, {"operations": 8, "magnitude": 0.0}, {"operations": 0, "magnitude": 1.0}:
        assert torch.equal(augment(x, Recipe(**changes), seeded()), x)
    zeros = torch.zeros(len(x))
    assert torch.equal(recolour(x, zeros, zeros, zeros, zeros), x)
    assert torch.allclose(transform(x, zeros, zeros, zeros, zeros), x, atol=1e-5)


def test_an_image_is_shifted_by_whole_pixels_and_its_mirror_image_comes_in():
    x = pictures(batch=400, channels=1, height=6, width=8)
    y = shift_and_flip(x, 0.25, True, seeded())
    padded = torch.nn.functional.pad(x, (2, 2, 1, 1), "reflect")
    places = set()
    for old, new in zip(padded, y, strict=True):
        windows = {(i, j): old[:, i : i + 6, j : j + 8] for i in range(3) for j in range(5)}
        matches = [(*at, 0) for at, window in windows.items() if torch.equal(new, window)]
        matches += [(*at, 1) for at, w in windows.items() if torch.equal(new, w.flip(-1))]
        assert len(matches) == 1
        places.update(matches)
    assert len(places) == 3 * 5 * 2


def test_a_quarter_turn_is_torchs_and_zoom_and_shear_go_where_they_should():
    x, zero = pictures(height=9, width=9), torch.zeros(12)
    turned = transform(x, zero + math.pi / 2, zero, zero, zero)
    assert torch.allclose(turned, x.rot90(1, (2, 3)), atol=1e-5)
    dot = torch.zeros(1, 1, 9, 13)
    dot[..., 4, 6 + 2] = 1  # two pixels to the right of the middle
    one = torch.zeros(1)
    assert transform(dot, one, one, one, one + math.log(2))[0, 0, 4].argmax() == 6 + 4
    dot = torch.zeros(1, 1, 9, 13)
    dot[..., 4 + 2, 6] = 1  # two pixels below the middle
    sheared = transform(dot, one, one + 1, one, one)  # x comes from x + y
    assert sheared[0, 0, 6].argmax() == 6 - 2
    quarter = transform(dot, one + math.pi / 2, one, one, one)
    assert quarter[0, 0, 4].argmax() == 6 + 2  # counter-clockwise, in pixels, though not square


def test_colours_move_away_from_black_from_flat_grey_from_grey_and_from_a_blur():
    x, zero, back = pictures(), torch.zeros(12), -torch.ones(12)
    grey = (x * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
    assert torch.allclose(recolour(x, back, zero, zero, zero), torch.zeros_like(x))
    flat = grey.mean((2, 3), keepdim=True).expand_as(x)
    assert torch.allclose(recolour(x, zero, back, zero, zero), flat, atol=1e-6)
    assert torch.allclose(recolour(x, zero, zero, back, zero), grey.expand_as(x), atol=1e-6)
    blurred = recolour(x, zero, zero, zero, back)
    window = x[:, :, :3, :3].clone() * torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    assert torch.allclose(blurred[:, :, 1, 1], window.sum((2, 3)), atol=1e-6)
    assert torch.allclose(recolour(x / 4, -back, zero, zero, zero), x / 2)


def test_as_many_operations_befall_an_image_as_the_recipe_says(monkeypatch):
    strengths = []
    monkeypatch.setattr("vitlab.training.augment.transform", lambda x, *s: strengths.append(s) or x)
    monkeypatch.setattr("vitlab.training.augment.recolour", lambda x, *s: strengths.append(s) or x)
    distort(pictures(batch=800), 3, 0.5, seeded())
    strength = torch.stack([*strengths[0], *strengths[1]], 1)
    assert ((strength != 0).sum(1) == 3).all()
    assert (strength != 0).sum(0).tolist() == pytest.approx([300] * 8, abs=60)
    largest = [math.radians(15), *[0.15] * 3, *[0.4] * 4]
    assert strength.abs().amax(0).tolist() == pytest.approx(largest)


def test_cutout_covers_one_rectangle_of_mid_grey():
    x = pictures(batch=300, channels=1, height=20, width=10)
    covered = cutout(x, 0.5, seeded()) == 0.5
    for mask in covered[:, 0]:
        rows, columns = mask.any(1), mask.any(0)
        assert torch.equal(mask, rows[:, None] & columns)
        assert 4 <= rows.sum() <= 10 and 2 <= columns.sum() <= 5
    assert covered.any(0).all()
    assert torch.equal(cutout(x, 0.5, seeded())[~covered], x[~covered])


def test_mixup_mixes_images_and_targets_alike():
    x, targets = pictures(), torch.eye(12)
    mixed, weights = mixup(x, targets, 0.8, np.random.default_rng(3))
    assert torch.allclose(weights.sum(1), torch.ones(12))
    assert torch.allclose(mixed, torch.einsum("bi,ichw->bchw", weights, x), atol=1e-6)
    assert len(weights[weights > 0].unique().round(decimals=4).unique()) <= 3  # one a batch
    assert mixup(x, targets, 0, np.random.default_rng(3)) == (x, targets)
    draws = [mixup(x, targets, 0.2, np.random.default_rng(i))[1].max().item() for i in range(200)]
    assert np.mean(np.array(draws) > 0.9) > 0.5  # Beta(0.2, 0.2) leaves most nearly alone
