"""Attention distances that are known, and those of everybody's models made by hand."""

import math

import pytest
import torch
from torch import nn

from tests.vitlab.instruments.models import GRID, HEADS, Known, SharedBlock, images
from vitlab.instruments import attention_distance

N = GRID[0] * GRID[1]


def shift(rows, columns):
    """Every patch attends to the one so many rows and columns further, around the edges."""
    weights = torch.zeros(N, N)
    for i in range(N):
        row, column = divmod(i, GRID[1])
        weights[i, (row + rows) % GRID[0] * GRID[1] + (column + columns) % GRID[1]] = 1
    return weights


def uniform_by_hand(grid, patch):
    places = [(y * patch[0], x * patch[1]) for y in range(grid[0]) for x in range(grid[1])]
    return sum(math.dist(a, b) for a in places for b in places) / len(places) ** 2


def test_to_itself_to_all_alike_and_a_step_along_each_axis_have_known_distances():
    heads = [torch.eye(N), torch.ones(N, N), shift(0, 1), shift(1, 0)]
    found = attention_distance(Known(torch.stack(heads)), images())
    # Around the edges a step of one comes back: 3 x 8 pixels for a column in 4, 2 x 8 for a row in 3
    known = [0, uniform_by_hand(GRID, (8, 8)), (3 * 8 + 24) / 4, (2 * 8 + 16) / 3]
    assert found.pixels[0].tolist() == pytest.approx(known)
    assert found.uniform.tolist() == pytest.approx([known[1]])
    assert found.blocks == ("blocks.0",) and found.pixels.dtype == torch.float64


def test_patches_that_are_not_square_have_their_own_step_along_each_axis():
    model = Known(torch.stack([shift(0, 1), shift(1, 0)]), patch=(4, 6))
    found = attention_distance(model, images(size=(12, 24)))
    assert found.pixels[0].tolist() == pytest.approx([(3 * 6 + 18) / 4, (2 * 4 + 8) / 3])
    assert found.uniform.item() == pytest.approx(uniform_by_hand(GRID, (4, 6)))


def test_tokens_that_stand_nowhere_are_left_out_and_what_they_take_is_told():
    weights = torch.ones(1, N + 2, N + 2)
    weights[:, 2:, 2:] = shift(0, 1) + shift(0, -1)  # each patch: 2 of 4 to patches
    weights[:, :2] = torch.rand(2, N + 2, generator=torch.Generator().manual_seed(0))
    found = attention_distance(Known(weights, extra=2), images())
    assert found.pixels.item() == pytest.approx((3 * 8 + 24) / 4)
    assert found.patches.item() == pytest.approx(0.5)
    weights = torch.zeros(2, N + 1, N + 1)
    weights[..., 0] = 1  # all to the extra token
    weights[0, 1, :] = torch.eye(N + 1)[4]  # but the first patch, to the third to its right
    found = attention_distance(Known(weights, extra=1), images())
    assert found.pixels[0, 0].item() == pytest.approx(24) and found.pixels[0, 1].isnan()
    assert found.patches[0].tolist() == pytest.approx([1 / N, 0])


def test_weights_that_all_images_share_count_for_each():
    weights = torch.rand(HEADS, N, N, generator=torch.Generator().manual_seed(0)) + 0.1
    model, shared = Known(weights), Known(weights)
    shared.blocks[0] = SharedBlock(weights)
    known, found = (attention_distance(m, images()).pixels for m in (model, shared))
    torch.testing.assert_close(found, known, rtol=1e-6, atol=0)


class Bare(nn.Module):
    """Attention with no convolution before it."""

    def forward(self, images):
        x = images.flatten(2).mT  # a token for each pixel
        return nn.functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])


def test_a_grid_can_be_given_where_no_convolution_tells_it():
    with pytest.raises(ValueError, match=r"give grid=\(rows, columns\)"):
        attention_distance(Bare(), images(size=(3, 4)))
    found = attention_distance(Bare(), images(size=(3, 4)), grid=(3, 4))
    assert found.uniform.item() == pytest.approx(uniform_by_hand((3, 4), (1, 1)))
