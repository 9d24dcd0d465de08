import torch
import torchvision

from minivit.parts import ConvStem
from minivit.patches import grid_of, patchify, unpatchify

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
