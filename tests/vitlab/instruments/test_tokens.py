"""Tokens deleted by hand, and gradients that are known."""

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.vitlab.instruments.models import CLASSES, MODELS, everybodys, images
from vitlab.instruments import patch_means, saliency, token_ablation


def logits(model, pictures):
    output = model(pictures)
    return getattr(output, "logits", output)


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
        y = model.norm(y)
        y = model.pooled(y)
        drop = (model(x) - model.head(y))[range(2), classes]
        torch.testing.assert_close(found[:, patch], drop.double(), rtol=1e-4, atol=1e-5)
        assert drop.abs().max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_models_by_forbidding_attention_to_the_token(name):
    """What nobody attends to is not there, where the answer is read from a class token."""
    model, pictures, grid = everybodys(name)
    extra = MODELS[name][3]
    found = token_ablation(model, pictures)
    assert found.shape == (2, grid[0] * grid[1])
    which = logits(model, pictures).argmax(1)
    assert torch.equal(found, token_ablation(model, pictures, which))
    if extra == 0:
        return  # read from the patches: tested above
    original = nn.functional.scaled_dot_product_attention
    token = extra + 1
    bias = torch.zeros(extra + grid[0] * grid[1])
    bias[token] = -torch.inf

    def forbidding(query, key, value, attn_mask=None, *args, **kwargs):
        return original(query, key, value, bias.expand(query.shape[-2], -1), *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.functional, "scaled_dot_product_attention", forbidding)
        other = logits(model, pictures)[range(2), which]
    drop = logits(model, pictures)[range(2), which] - other
    torch.testing.assert_close(found[:, 1], drop.double(), rtol=1e-4, atol=1e-5)


def test_the_gradient_of_a_linear_map_is_its_weight():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 6, CLASSES))
    x, classes = images(2, (4, 6)), torch.tensor([4, 0])
    found = saliency(model, x, classes)
    weight = model[1].weight.detach().double().view(CLASSES, 3, 4, 6).abs().amax(1)
    torch.testing.assert_close(found, weight[classes])
    assert torch.equal(saliency(model, x), saliency(model, x, model(x).argmax(1)))


def test_means_over_patches_are_in_reading_order():
    maps = torch.arange(24.0).view(1, 4, 6)
    assert patch_means(maps, (2, 3)).tolist() == [[3.5, 5.5, 7.5, 15.5, 17.5, 19.5]]
