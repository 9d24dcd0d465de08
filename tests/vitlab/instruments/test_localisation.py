"""Where tokens look like their patch, and which pixels reach a place, of models that are known."""

import pytest
import torch
from torch import nn

import minivit
from minivit.patches import patchify
from tests.parity import close, draw, random
from tests.vitlab.instruments.models import MODELS, everybodys, images
from tests.vitlab.tried.by_hand import ends
from vitlab.instruments import linear_cka, localisation, readable, receptive_field

IMAGES = random(160, 3, 4, 6)  # independent pixels: a patch tells nothing of the others


class Tokens(nn.Module):
    """Patches of 2 x 2 become tokens in an order of their own, behind a token of one of them."""

    def __init__(self, order, first=None):
        super().__init__()
        self.conv, self.layer = nn.Conv2d(3, 12, 2, stride=2).double(), nn.Identity()
        self.conv.weight.data = torch.linalg.qr(random(12, 12, seed=9)).Q.view(12, 3, 2, 2)
        self.order, self.first = order, first

    def forward(self, images):
        x = self.conv(images).flatten(2).mT[:, self.order]
        return self.layer(x if self.first is None else torch.cat([x[:, [self.first]], x], 1))


def test_a_model_that_keeps_patches_in_their_places_localises():
    for found in (
        localisation(Tokens(range(6)), IMAGES, "layer"),
        readable(Tokens(range(6)), IMAGES[:80], IMAGES[80:], "layer", components=12),
    ):
        assert found.places.shape == (2, 3, 2, 3) and found.hits.all() and not len(found.extra)
        assert found.own.min() > 0.99 and found.elsewhere.abs().max() < 0.1


def test_where_patches_were_moved_the_token_is_like_the_place_it_came_from():
    order = [3, 0, 1, 4, 5, 2]
    found = localisation(Tokens(order, first=4), IMAGES, "layer")
    assert found.places.view(6, 6).argmax(1).tolist() == order
    assert not found.hits[0].any() and found.own.view(6)[0] < 0.1
    assert found.extra.shape == (1, 2, 3)
    assert found.extra.argmax() == order[4]  # the class token holds what the fifth token holds


def test_it_is_cka_between_one_token_and_one_patch_and_means_leave_out_the_own():
    model = Tokens([3, 0, 1, 4, 5, 2])
    found = localisation(model, IMAGES, "layer").places
    tokens, patches = model(IMAGES).detach(), patchify(IMAGES, 2)
    close(found[0, 2, 1, 0], linear_cka(tokens[:, 2], patches[:, 3]))
    many = localisation(model, IMAGES.split(40), "layer").places
    assert 0 < (many - found).abs().max() < 0.1
    found = localisation(Tokens(range(6)), IMAGES, "layer")
    values = found.places.view(6, 6)
    close(found.elsewhere.view(6)[2], (values[2].sum() - values[2, 2]) / 5)
    close(found.own.view(6), values.diagonal())
    wide = localisation(minivit.create("vit_8px").eval(), random(20, 1, 8, 8).float(), "blocks.0")
    assert wide.interior.sum() == 4 and wide.interior[1:3, 1:3].all()


def test_what_is_readable_is_the_share_of_variance_explained():
    model, noise = Tokens(range(6)), random(4000, 3, 4, 6, seed=5)

    def blurred(module, inputs, output):  # half the variance of what leaves is noise
        return output + random(*output.shape, seed=len(output)) * output.std()

    model.conv.bias.data.zero_()
    model.layer.register_forward_hook(blurred)
    found = readable(model, noise[:3000], noise[3000:], "layer")
    assert (found.own - 0.5).abs().max() < 0.05 and found.elsewhere.abs().max() < 0.02


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
    for y, x in (3, 5), (20, 10):
        slopes = []
        for colour in range(3):
            moved = pictures.repeat(2, 1, 1, 1)
            moved[:, colour, y, x] += torch.tensor([1e-4, -1e-4]).double()
            up, down = ends(model, moved, [block])[block][1][:, extra + grid[1] + 2]
            slopes.append((up - down) / 2e-4)
        known = torch.stack(slopes).abs().mean().item()
        assert found.sensitivity[y, x].item() == pytest.approx(known, rel=1e-6)


def test_what_does_not_depend_on_the_images_is_refused():
    for weight in nn.Parameter(torch.ones(1, 4, 2, 2)), torch.ones(1, 4, 2, 2):
        blind = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Identity())
        blind[1].forward = lambda x, weight=weight: 2 * weight
        with pytest.raises(ValueError, match="'1' does not depend on the images"):
            receptive_field(blind, images(1, (4, 4)), at="1")
