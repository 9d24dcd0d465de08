import pytest
import torch
import torchvision
from torch import nn

import minivit
from minivit.parts import ConvStem
from minivit.patches import grid_of, patchify, unpatchify
from minivit.vit import PatchEmbedding
from tests.refusals import unchecked

# batch, channels, rows, columns, patch height, patch width, dim: all different
B, C, R, S, H, W, D = 2, 3, 4, 5, 6, 7, 8
IMAGES = torch.randn(B, C, R * H, S * W, generator=torch.Generator().manual_seed(0))


def test_a_patch_is_the_rectangle_of_the_image_where_it_stands():
    patches = patchify(IMAGES, (H, W))
    assert patches.shape == (B, R * S, C * H * W)
    row, column = 2, 3
    cut = IMAGES[:, :, row * H : (row + 1) * H, column * W : (column + 1) * W]
    assert torch.equal(patches[:, row * S + column], cut.flatten(1))


def test_unpatchify_undoes_patchify():
    assert torch.equal(unpatchify(patchify(IMAGES, (H, W)), (R, S), (H, W)), IMAGES)


def test_the_patch_embedding_is_one_matrix_for_every_patch():
    layer = PatchEmbedding((H, W), D, C).double()
    nn.init.normal_(layer.projection.bias)
    matrix, bias = layer.projection.weight.flatten(1), layer.projection.bias
    expected = patchify(IMAGES.double(), (H, W)) @ matrix.T + bias
    assert expected.std() > 0.5
    torch.testing.assert_close(layer(IMAGES.double()), expected, rtol=1e-12, atol=1e-12)


def test_the_patch_embedding_keeps_the_variance_of_the_pixels():
    torch.manual_seed(0)
    tokens = PatchEmbedding(16, 256)(torch.randn(4, 3, 64, 64))
    assert 0.8 < tokens.var() < 1.2


def test_the_convolutional_stem_has_the_channels_of_xiao_et_al_and_a_token_for_each_patch():
    stem = ConvStem(16, 384)
    convolutions = [m for m in stem.modules() if isinstance(m, nn.Conv2d)]
    assert [c.out_channels for c in convolutions] == [48, 96, 192, 384, 384]
    assert [c.kernel_size[0] for c in convolutions] == [3, 3, 3, 3, 1]
    assert stem(torch.randn(2, 3, 64, 96)).shape == (2, 4 * 6, 384)


def test_the_convolutional_stem_equals_torchvisions():
    configs = [torchvision.models.vision_transformer.ConvStemConfig(c, 3, 2) for c in (8, 16, 32)]
    theirs = torchvision.models.VisionTransformer(
        32, 8, 1, 1, 32, 4, conv_stem_configs=configs
    ).conv_proj.double()
    ours = ConvStem(8, 32).double()
    for tensor in theirs.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)  # variances too, which must be positive
    state = zip(ours.state_dict(), theirs.state_dict().values(), strict=True)
    ours.load_state_dict(dict(state))
    images = torch.randn(2, 3, 32, 48, dtype=torch.float64)
    for mode in (False, True):  # BatchNorm's own statistics, then the batch's
        expected = theirs.train(mode)(images).flatten(2).mT
        assert expected.abs().max() > 0.1
        torch.testing.assert_close(ours.train(mode)(images), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("image", "patch", "grid"), [(224, 32, (7, 7)), ((8, 12), (4, 2), (2, 6)), ((8, 12), 4, (2, 3))]
)
def test_a_grid_counts_rows_and_columns(image, patch, grid):
    assert grid_of(image, patch) == grid


def test_autocast_may_cast_images_but_nothing_else_may():
    model = minivit.create("vit_8px")
    with torch.autocast("cpu", torch.bfloat16):
        assert model(torch.randn(1, 1, 8, 8)).dtype == torch.bfloat16
        with unchecked(), pytest.raises(ValueError, match="uint8"):
            model(torch.zeros(1, 1, 8, 8, dtype=torch.uint8))
