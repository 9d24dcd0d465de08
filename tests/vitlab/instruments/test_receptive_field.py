"""Receptive fields of convolutions, which are known, and of models by another way."""

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.vitlab.instruments.models import MODELS, everybodys, images
from vitlab.instruments import receptive_field


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_averaging_convolutions_have_an_extent_that_grows_as_their_number(layers):
    model = nn.Sequential(*(nn.Conv2d(3, 3, 3, padding="same") for _ in range(layers))).double()
    for convolution in model:
        nn.init.constant_(convolution.weight, 1 / 27)
    found = receptive_field(model, images(1, (31, 25), torch.float64), at=str(layers - 1))
    kernel, third = torch.ones(1).double(), torch.ones(1, 1, 3).double() / 3
    for _ in range(layers):  # the same kernel along each axis, convolved with itself
        kernel = nn.functional.conv1d(kernel[None], third, padding=2)[0]
    known = torch.zeros(31, 25).double()
    known[15 - layers : 16 + layers, 12 - layers : 13 + layers] = torch.outer(kernel, kernel) / 3
    torch.testing.assert_close(found.sensitivity, known, rtol=1e-12, atol=0)
    assert found.extent == (1 + 2 * layers, 1 + 2 * layers)
    assert found.support.sum() == (1 + 2 * layers) ** 2


def test_attention_alone_carries_pixels_from_afar_and_a_neighbourhood_those_around():
    for changes, extent in ({}, (32, 32)), ({"local": 3}, (12, 12)):
        model = draw(minivit.create("vit_32px", dim=16, depth=1, **changes))
        found = receptive_field(model, images(2, (32, 32)), at="blocks.0", place=(4, 4))
        assert found.extent == extent
    sizes = {"image_size": (12, 32), "patch_size": (4, 8), "dim": 8, "depth": 1, "heads": 2}
    oblong = minivit.create("vit_b_32", **sizes)
    found = receptive_field(oblong, images(1, (12, 32)), at="patch_embedding")
    assert (found.grid, found.place, found.extent) == ((3, 4), (1, 2), (4, 8))  # the middle
    assert found.support.nonzero().amin(0).tolist() == [4, 16]
    without = minivit.remove(model, "attention")
    assert receptive_field(without, images(2, (32, 32)), at="blocks.0").extent == (4, 4)


def test_a_place_is_in_the_middle_of_what_its_filter_reads():
    """A stride takes every other filter, so that its places are not the middles of equal cells."""
    model = nn.Sequential(nn.Conv2d(1, 1, 3, stride=2, padding=1), nn.AvgPool2d(2))
    nn.init.constant_(model[0].weight, 1)
    picture = torch.randn(1, 1, 12, 16, dtype=torch.float64)
    strided = receptive_field(model.double(), picture, at="0", place=(2, 4))
    assert strided.middle == (4.5, 8.5)  # pixels 4 and 8
    assert strided.distance == pytest.approx((4 + 4 * 2**0.5) / 9)
    assert receptive_field(model, picture, at="1", place=(1, 2)).middle == (5.5, 9.5)
    adaptive = nn.Sequential(nn.AdaptiveAvgPool2d((3, 4)), nn.Conv2d(1, 1, 1)).double()
    assert receptive_field(adaptive, picture, at="1", place=(1, 2)).middle == (6, 10)


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_models_by_differences(name):
    model, pictures, grid = everybodys(name)
    block, extra = MODELS[name][1].format(1), MODELS[name][3]
    model, pictures = model.double(), pictures[:1].double()
    found = receptive_field(model, pictures, at=block, place=(1, 2))
    assert found.grid == grid
    token = extra + grid[1] + 2
    kept = []
    with model.get_submodule(block).register_forward_hook(lambda m, i, o: kept.append(o)):
        for y, x in (3, 5), (20, 10):
            slopes = []
            for colour in range(3):
                for sign in 1, -1:
                    moved = pictures.clone()
                    moved[0, colour, y, x] += sign * 1e-4
                    model(moved)
                up, down = (t[0, token] for t in kept[-2:])
                slopes.append((up - down) / 2e-4)
            known = torch.stack(slopes).abs().mean().item()
            assert found.sensitivity[y, x].item() == pytest.approx(known, rel=1e-6)


def test_what_an_in_place_operation_overwrites_is_taken_before():
    convolution = nn.Conv2d(1, 4, 1)
    nn.init.constant_(convolution.weight, 1)
    nn.init.constant_(convolution.bias, -100)
    model = nn.Sequential(convolution, nn.ReLU(inplace=True))
    assert receptive_field(model, torch.rand(1, 1, 3, 3), at="0").sensitivity[1, 1] == 1
    assert not receptive_field(model, torch.rand(1, 1, 3, 3), at="1").support.any()


def test_what_does_not_depend_on_the_images_is_refused():
    for weight in nn.Parameter(torch.ones(1, 4, 2, 2)), torch.ones(1, 4, 2, 2):
        blind = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Identity())
        blind[1].forward = lambda x, weight=weight: 2 * weight
        with pytest.raises(ValueError, match="'1' does not depend on the images"):
            receptive_field(blind, images(1, (4, 4)), at="1")
