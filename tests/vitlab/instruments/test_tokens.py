"""Tokens deleted by hand, and gradients that are known."""

from functools import partial

import pytest
import torch
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused
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


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_gradients_by_differences(name):
    model, pictures, _ = everybodys(name)
    model, pictures = model.double(), pictures.double()
    found, which = saliency(model, pictures), logits(model, pictures).argmax(1)
    y, x, slopes = 7, 19, []
    for colour in range(3):
        step = torch.zeros_like(pictures)
        step[:, colour, y, x] = 1e-4
        slope = (logits(model, pictures + step) - logits(model, pictures - step)) / 2e-4
        slopes.append(slope[range(2), which].abs())
    torch.testing.assert_close(found[:, y, x], torch.stack(slopes).amax(0), rtol=1e-5, atol=0)


def test_means_over_patches_are_in_reading_order():
    maps = torch.arange(24.0).view(1, 4, 6)
    assert patch_means(maps, (2, 3)).tolist() == [[3.5, 5.5, 7.5, 15.5, 17.5, 19.5]]
    assert_refused([
        (lambda: patch_means(maps, (3, 3)), ValueError, r"that 3 x 3 patches divide: got \[1, 4, 6\]"),
        (lambda: patch_means(maps, 3), ValueError, r"expected grid=\(rows, columns\): got 3"),
    ])  # fmt: skip


@pytest.mark.parametrize("measure", [token_ablation, saliency])
def test_batches_do_not_matter_and_the_model_comes_back_as_it_was(measure):
    model = draw(minivit.create("vit_8px", depth=2, dropout=0.3)).train()
    x, classes = torch.rand(5, 1, 8, 8), torch.arange(5)
    found, other = measure(model, x, classes), measure(model, iter(x.split(2)), classes)
    torch.testing.assert_close(found, other, rtol=1e-4, atol=1e-6)
    assert model.training and not x.requires_grad
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    cases = [
        (x, torch.arange(6), ValueError, "a class for each image: got 6 for 5"),
        (x, torch.arange(6, 11), ValueError, "a class below 10"),
        (x, classes / 2, TypeError, "expected numbers of classes.*: got torch.float32"),
        (x / 0, classes, ValueError, "expected images of finite numbers: got some that are not"),
        (x.byte(), classes, (TypeError, ValueError), "expected images of .*: got torch.uint8"),
    ]
    assert_refused((partial(measure, model, x, y), kind, said) for x, y, kind, said in cases)


def test_gradients_are_there_in_inference_mode():
    model, x = draw(minivit.create("vit_8px", depth=2)), torch.rand(2, 1, 8, 8)
    with torch.inference_mode():
        assert torch.equal(saliency(model, x + 0), saliency(model, x))


def test_where_tokens_cannot_be_deleted_it_says_so():
    for name in "mixer_32px", "resnet_32px":
        with pytest.raises(ValueError, match="computes no attention between tokens"):
            token_ablation(minivit.create(name), images(1, (32, 32)))
        assert saliency(minivit.create(name), images(1, (32, 32))).shape == (1, 32, 32)
    with pytest.raises(ValueError, match="the same tokens in all blocks"):
        token_ablation(minivit.create("pit_32px"), images(1, (32, 32)))
