"""Parts of a model as functions, with what else the model calls them with."""

from functools import partial

import pytest
import torch
import torchvision
from torch import nn

import minivit
from tests.parity import draw
from tests.refusals import assert_refused
from vitlab.calls import activation, sublayer


def vit(depth):
    """A model, and images for it."""
    draws = torch.Generator().manual_seed(0)
    model = minivit.create("vit_8px", dim=12, heads=3, depth=depth, window=2)
    return draw(model.eval()), torch.randn(2, 1, 8, 8, generator=draws)


@pytest.mark.parametrize("name", ["blocks.1", "blocks.1.attention", "blocks.0.mlp", "head"])
def test_the_function_gives_at_its_input_what_the_module_gave(name):
    model, images = vit(2)
    function, x = sublayer(model, name, images)
    with minivit.record(model, name) as seen:
        model(images)
    assert torch.equal(function(x), seen[name])
    assert not torch.allclose(function(2 * x), seen[name])
    assert torch.autograd.grad(function(x.requires_grad_()).square().sum(), x)[0].any()


def test_query_key_and_value_that_are_one_tensor_change_together():
    model = draw(torchvision.models.VisionTransformer(8, 4, 1, 3, 12, 24)).eval()
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    name = "encoder.layers.encoder_layer_0.self_attention"
    function, x = sublayer(model, name, images)
    module, other = model.get_submodule(name), torch.randn_like(x)
    torch.testing.assert_close(function(other), module(other, other, other, need_weights=False)[0])


@pytest.mark.parametrize("need_weights", [True, False])
def test_of_an_output_and_attention_weights_or_none_the_output_is_taken(need_weights):
    """KamitaniLab/bdpy#76."""
    model = nn.ModuleDict({"a": nn.MultiheadAttention(6, 2, batch_first=True)}).eval()
    model.forward = lambda x: model["a"](x, x, x, need_weights=need_weights)[0]
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(activation(model, "a")(x), model(x))
    assert torch.equal(sublayer(model, "a", x)[0](x), model(x))


def test_a_part_that_works_in_place_is_a_function_like_any_other():
    model = nn.Sequential(nn.Identity(), nn.ELU(inplace=True), nn.Flatten()).eval()
    images = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    function, x = sublayer(model, "1", images.clone())
    assert torch.equal(x, images)
    for call in function, activation(model, "1"):
        gradient = torch.autograd.grad(call(x.requires_grad_()).sum(), x)[0]
        torch.testing.assert_close(gradient, images.clamp(max=0).exp())
        assert torch.equal(call(x.detach()), nn.ELU()(images)) and torch.equal(x, images)


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused, self.pair, self.counter = nn.Linear(2, 2), nn.LSTM(2, 2), nn.Embedding(3, 2)

    def forward(self, x):
        return self.pair(x)[0] + self.counter(torch.tensor([1]))


@pytest.mark.parametrize("name", ["", "blocks.1", "blocks.0.attention", "patch_embedding"])
def test_an_activation_is_what_the_module_gives_and_its_gradient_reaches_the_image(name):
    model, images = vit(3)
    function, weight = activation(model, name), torch.randn(2, 1)
    with minivit.record(model, name) as seen:
        model(images.requires_grad_())
    assert torch.equal(function(images), seen[name])
    sums = [(x.flatten(1).square() * weight).sum() for x in (function(images), seen[name])]
    gradients = [torch.autograd.grad(total, images)[0] for total in sums]
    assert gradients[0].any() and torch.equal(*gradients)
    model.blocks[2].register_forward_pre_hook(lambda *_: pytest.fail("runs behind the activation"))
    activation(model, "blocks.1")(images)


def test_what_is_no_function_of_one_tensor_is_refused_and_no_hook_stays():
    model, x = Parts(), torch.randn(3, 1, 2)

    def part(name):
        function, read = sublayer(model, name, x)
        function(read)

    assert_refused([
        *((partial(part, name), RuntimeError, f"did not call '{name}' with a floating") for name in ("unused", "counter")),
        (lambda: activation(model, "unused")(x), RuntimeError, "the model did not call 'unused'"),
        *((partial(call, name), kind, said) for call in (part, lambda name: activation(model, name)(x)) for name, kind, said in (
            ("pair", RuntimeError, "one tensor from 'pair': got 3"),
            ("pear", LookupError, "no module matches 'pear'; near names: .*pair"),
            ("*", ValueError, "the name of one module"),
        )),
    ])  # fmt: skip
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
