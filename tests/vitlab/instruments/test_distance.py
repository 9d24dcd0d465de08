"""Distances and rollouts of attention that is known, and what has none."""

import pytest
import torch
from torch import nn

from tests.parity import Function, draw
from tests.vitlab.instruments.models import GRID, HEADS, Known, SharedBlock, images
from tests.vitlab.tried.architectures import TIMM, of_timm
from tests.vitlab.tried.by_hand import distances
from vitlab.instruments import attention_distance, position_table, rollout

N = 12  # patches


def test_a_step_along_each_axis_of_patches_that_are_not_square_has_a_known_distance():
    """facebookresearch/dinov2#506."""
    places = torch.arange(N).view(GRID)
    steps = [torch.eye(N)[places.roll(-1, axis).flatten()] for axis in (1, 0)]
    oblong = Known(torch.stack(steps), patch=(4, 6))
    found = attention_distance(oblong, images(size=(12, 24)))
    # Around the edges a step of one comes back: 3 x 6 pixels for a column in 4, 2 x 4 for a row in 3
    assert found.pixels[0].tolist() == pytest.approx([(3 * 6 + 18) / 4, (2 * 4 + 8) / 3])
    assert found.uniform.item() == pytest.approx(distances(GRID, (4, 6)).mean().item())


def test_a_head_that_looks_at_tokens_that_stand_nowhere_alone_has_no_distance():
    weights = torch.zeros(2, N + 1, N + 1)
    weights[..., 0] = 1  # all to the extra token
    weights[0, 1, :] = torch.eye(N + 1)[4]  # but the first patch, to the third to its right
    found = attention_distance(Known(weights, extra=1), images())
    assert found.pixels[0, 0].item() == pytest.approx(24) and found.pixels[0, 1].isnan()


def test_weights_that_all_images_share_count_for_each():
    weights = torch.rand(HEADS, N, N, generator=torch.Generator().manual_seed(0)) + 0.1
    model, shared = Known(weights), Known(weights)
    shared.blocks[0] = SharedBlock(weights)
    known, found = (attention_distance(m, images()).pixels for m in (model, shared))
    torch.testing.assert_close(found, known, rtol=1e-6, atol=0)


def test_a_grid_can_be_given_where_no_convolution_tells_it():
    def attend(images):
        x = images.flatten(2).mT[:, None]  # a token for each pixel
        return nn.functional.scaled_dot_product_attention(x, x, x)

    with pytest.raises(ValueError, match=r"give grid=\(rows, columns\)"):
        attention_distance(Function(attend), images(size=(3, 4)))
    found = attention_distance(Function(attend), images(size=(3, 4)), grid=(3, 4))
    assert found.uniform.item() == pytest.approx(distances((3, 4), (1, 1)).mean().item())


def test_a_grid_follows_the_size_that_was_set_last():
    """timm#2317."""
    model = draw(of_timm("vit_base_patch16_224", **TIMM)())
    for size in (16, 24), (24, 16):
        model.set_input_size(img_size=size)
    assert rollout(model, images(1, (24, 16))).grid == (3, 2)
    assert torch.equal(position_table(model), model.pos_embed[0, 1:].unflatten(0, (3, 2)))


@pytest.mark.parametrize("identity", [0, 0.3])
def test_heads_are_averaged_and_blocks_are_multiplied_the_last_one_leftmost(identity):
    weights = torch.rand(3, 2, N, N, generator=torch.Generator().manual_seed(0))
    weights /= weights.sum(-1, keepdim=True)
    found = rollout(Known(*weights), images(1), identity=identity)
    a, b, c = ((1 - identity) * w.double().mean(0) + identity * torch.eye(N) for w in weights)
    known = torch.stack([a, b @ a, c @ b @ a])
    torch.testing.assert_close(found.matrices[:, 0], known, rtol=1e-6, atol=1e-7)
