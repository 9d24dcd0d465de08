"""Localisation of models that keep every patch in its place, mix all, or have none to compare."""

import torch
from torch import nn

import minivit
from minivit.patches import patchify
from tests.parity import close, random
from vitlab.instruments import linear_cka, localisation, readable

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
