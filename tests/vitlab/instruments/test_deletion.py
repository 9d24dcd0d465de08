"""Tokens deleted by hand, and curves of scores right and wrong."""

import pytest
import torch
from torch import nn

import minivit
from tests.parity import Function, draw, given
from tests.vitlab.instruments.models import MODELS, everybodys, images
from tests.vitlab.tried.by_hand import softmaxes
from vitlab.instruments import deletion_curves, patch_means, token_ablation

GRID, PATCHES, CAUSE = (2, 3), 6, 4
AT = ..., slice(4, 8), slice(4, 8)  # the pixels of the cause


def says(x):
    """Class 1, by the logarithm of its odds, if the cause is bright."""
    bright = x[AT].mean((1, 2, 3))
    return torch.stack([torch.zeros_like(bright), 3 * bright], 1)


def scored(*best):
    scores = torch.zeros(1, PATCHES)
    for i, patch in enumerate(best):
        scores[0, patch] = PATCHES - i
    return scores


def curves(scores):
    """Of an image whose cause alone is bright, and whose mean is zero."""
    image = torch.full((1, 1, 8, 12), -1 / (PATCHES - 1))
    image[AT] = 1
    return deletion_curves(Function(says), image, scores, torch.tensor([1]), grid=GRID)


@pytest.mark.parametrize("place", range(PATCHES))
def test_the_curve_falls_where_the_cause_is_deleted_and_rises_where_it_is_inserted(place):
    others = [i for i in range(PATCHES) if i != CAUSE]
    found = curves(scored(*others[:place], CAUSE, *others[place:]))
    sure = torch.tensor([0.0, 3.0]).double().softmax(0)[1]
    gone = torch.arange(PATCHES + 1) > place
    assert torch.allclose(found.deletion[0], torch.where(gone, 0.5, sure))
    assert torch.allclose(found.insertion[0], torch.where(gone, sure, 0.5))
    assert torch.equal(found.fraction, torch.arange(PATCHES + 1).double() / PATCHES)


def test_what_is_missing_is_by_default_the_images_mean_colour():
    x = torch.rand(2, 3, 8, 12, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 12, 4))
    found = deletion_curves(model, x, torch.rand(2, PATCHES), torch.tensor([1, 2]), grid=GRID)
    mean = x.mean((2, 3), keepdim=True).expand_as(x)
    for pictures, sure in (mean, found.deletion[:, -1]), (x, found.deletion[:, 0]):
        torch.testing.assert_close(sure, model(pictures).double().softmax(-1)[range(2), [1, 2]])
    assert torch.equal(found.insertion[:, 0], found.deletion[:, -1])
    assert torch.equal(found.insertion[:, -1], found.deletion[:, 0])
    # Equal scores go in reading order.
    assert (curves(torch.zeros(1, PATCHES)).deletion[0] > 0.6).sum() == CAUSE + 1


@pytest.mark.parametrize("options", [{"pool": "class"}, {"pool": "mean"}, {"pool": "attention"},
                                     {"pool": "class", "local": 3}])  # fmt: skip
def test_a_deleted_token_is_one_that_was_never_there(options):
    size = {"image_size": (8, 12), "patch_size": (4, 3), "channels": 3}
    model = draw(minivit.create("vit_8px", **size, **options)).eval()
    x = images(2, (8, 12))
    classes = torch.tensor([3, 9])
    found = token_ablation(model, x, classes)
    assert found.shape == (2, 8) and found.dtype == torch.float64
    tokens, extra = model.patch_embedding(x), options["pool"] == "class"
    if extra:
        tokens = torch.cat([model.class_token.expand(2, -1, -1), tokens], 1)
    tokens, mask = model.positions(tokens, (2, 4)), model.mask((2, 4))
    for patch in range(8):
        kept = [i for i in range(8 + extra) if i != patch + extra]
        y = tokens[:, kept]
        for block in model.blocks:
            y = block(y, None if mask is None else mask[kept][:, kept])
        without = model.head(model.pooled(model.norm(y)))
        drop = (model(x) - without)[range(2), classes]
        torch.testing.assert_close(found[:, patch], drop.double(), rtol=1e-4, atol=1e-5)
        assert drop.abs().max() > 1e-3


@pytest.mark.parametrize("name", ["minivit class", "torchvision", "timm", "huggingface"])
def test_everybodys_models_by_forbidding_attention_to_the_token(name):
    """What nobody attends to is not there, where the answer is read from a class token."""
    model, pictures, grid = everybodys(name)
    found = token_ablation(model, pictures)
    assert found.shape == (2, grid[0] * grid[1])
    whole = given(model(pictures))
    which = whole.argmax(1)

    def forbidding(_, weights):
        weights = weights.index_fill(-1, torch.tensor([MODELS[name][3] + 1]), 0)
        return weights / weights.sum(-1, keepdim=True)

    with softmaxes(2, forbidding):
        drop = (whole - given(model(pictures)))[range(2), which]
    torch.testing.assert_close(found[:, 1], drop.double(), rtol=1e-4, atol=1e-5)


def test_means_of_patches_are_in_reading_order():
    maps = torch.arange(24.0).view(1, 4, 6)
    assert patch_means(maps, (2, 3)).tolist() == [[3.5, 5.5, 7.5, 15.5, 17.5, 19.5]]
