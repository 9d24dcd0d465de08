"""Patches, and the positions that are added to them."""

import itertools
import math

import pytest
import torch
import torchvision

from minivit.parts import ConvStem
from minivit.patches import grid_of, patchify, unpatchify
from minivit.positions import resample, sincos_1d, sincos_2d
from minivit.variants import positions_of

# batch, channels, rows, columns, patch height, patch width: all different
B, C, R, S, H, W = 2, 3, 4, 5, 6, 7
IMAGES = torch.randn(B, C, R * H, S * W, generator=torch.Generator().manual_seed(0))


def test_a_patch_is_the_rectangle_of_the_image_where_it_stands():
    patches = patchify(IMAGES, (H, W))
    assert patches.shape == (B, R * S, C * H * W)
    row, column = 2, 3
    cut = IMAGES[:, :, row * H : (row + 1) * H, column * W : (column + 1) * W]
    assert torch.equal(patches[:, row * S + column], cut.flatten(1))
    assert torch.equal(unpatchify(patches, (R, S), (H, W)), IMAGES)
    assert grid_of((R * H, S * W), (H, W)) == (R, S) and grid_of(224, 32) == (7, 7)


def test_the_convolutional_stem_equals_torchvisions():
    configs = [torchvision.models.vision_transformer.ConvStemConfig(c, 3, 2) for c in (8, 16, 32)]
    vit = torchvision.models.VisionTransformer(32, 8, 1, 1, 32, 4, conv_stem_configs=configs)
    theirs = vit.conv_proj.double()
    ours = ConvStem(8, 32).double()
    for tensor in theirs.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)  # variances too, which must be positive
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    images = torch.randn(2, 3, 32, 48, dtype=torch.float64)
    for mode in (False, True):  # BatchNorm's own statistics, then the batch's
        expected = theirs.train(mode)(images).flatten(2).mT
        assert expected.abs().max() > 0.1
        torch.testing.assert_close(ours.train(mode)(images), expected, rtol=1e-10, atol=1e-10)


def test_sincos_1d_is_the_formula_far_out_too():
    for place, i, dim in (*itertools.product(range(7), range(3), [6]), (10**6, 0, 2)):
        angle = place / 10000 ** (2 * i / dim)
        expected = pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-7)
        assert sincos_1d(place + 1, dim)[place, 2 * i : 2 * i + 2].tolist() == expected


def test_sincos_2d_has_the_row_in_the_first_half_and_the_column_in_the_second():
    table = sincos_2d((3, 5), 8).reshape(3, 5, 8)
    for row in range(3):
        for column in range(5):
            expected = torch.cat([sincos_1d(3, 4)[row], sincos_1d(5, 4)[column]])
            assert torch.equal(table[row, column], expected)


@pytest.mark.parametrize("side", [4, 9])
def test_resampling_equals_torchvisions_on_square_grids(side):
    table = torch.randn(1 + 6 * 6, 5)
    state = {"encoder.pos_embedding": table[None].clone()}
    interpolate = torchvision.models.vision_transformer.interpolate_embeddings
    expected = interpolate(side * 16, 16, state)["encoder.pos_embedding"][0]
    assert expected.shape == (1 + side * side, 5)
    assert torch.equal(resample(table, (6, 6), (side, side)), expected)


def test_resampling_keeps_the_class_token_and_the_corners_and_the_grid_it_has():
    """timm#2737."""
    table = torch.randn(1 + 4 * 6, 3, dtype=torch.float64)
    assert resample(table, (4, 6), (4, 6)) is table
    before = table[1:].reshape(4, 6, 3)
    for grid in (7, 9), (6, 4):  # the second has as many places
        other = resample(table, (4, 6), grid)
        assert torch.equal(other[0], table[0])
        after = other[1:].reshape(*grid, 3)
        for corner in [(0, 0), (0, -1), (-1, 0), (-1, -1)]:
            torch.testing.assert_close(after[corner], before[corner], rtol=1e-12, atol=1e-12)
        assert torch.equal(resample(table[1:], (4, 6), grid), other[1:])


def test_fixed_positions_are_not_trained_and_count_patches_in_reading_order():
    positions = positions_of("sincos1d", (3, 5), 8, class_token=True)
    assert torch.equal(positions.table[1:], sincos_1d(15, 8)) and not positions.table[0].any()
    assert not list(positions.parameters())
