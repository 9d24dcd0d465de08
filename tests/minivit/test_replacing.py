"""Outputs and attention weights given to everybody's models in the place of their own."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import minivit
from tests.minivit.parity import draw
from tests.minivit.refusals import assert_refused
from tests.minivit.test_recording_attention import (
    DEPTH,
    HEADS,
    B,
    close,
    every_model,
    logits,
    minivit_vit,
    setup,
)


@every_model
def test_a_models_own_weights_in_their_place_change_nothing(name):
    model, images, module, _ = setup(name)
    names = [f"{module.format(i)}.weights" for i in range(DEPTH)]
    with torch.no_grad():
        plain = logits(model(images))
        with minivit.record(model, *names) as seen:
            model(images)
        with minivit.replace(model, dict(seen)):
            close(logits(model(images)), plain, 1e-6 if "eager" in name else 1e-12)


@every_model
def test_other_weights_are_what_the_model_continues_with(name):
    """The mean over all tokens: every token gets the same from attention."""
    model, images, module, _ = setup(name)
    attention = module.format(1)
    with torch.no_grad():
        plain = logits(model(images))
        with (
            minivit.replace(
                model, {f"{attention}.weights": lambda w: w.new_ones(()) / w.shape[-1]}
            ),
            minivit.record(model, attention, f"{attention}.weights") as seen,
        ):
            given = logits(model(images))
        assert torch.equal(logits(model(images)), plain)
    branch = seen[attention][0] if isinstance(seen[attention], tuple) else seen[attention]
    close(branch, branch.mean(1, keepdim=True).expand_as(branch), 1e-12)
    tokens = branch.shape[1]
    torch.testing.assert_close(
        seen[f"{attention}.weights"].double(),
        torch.full((B, HEADS, tokens, tokens), 1 / tokens).double(),
    )
    assert (given - plain).abs().max() > 1e-3


def test_an_output_in_another_place_is_activation_patching():
    model = draw(minivit_vit()).eval()
    one, other = torch.randn(2, B, 3, 24, 24, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        with minivit.record(model, "blocks.1") as seen:
            known = model(other)
        with minivit.replace(model, {"blocks.1": seen["blocks.1"]}):
            patched = model(one)
        with minivit.replace(model, {"blocks.1": lambda x: 0 * x}):
            assert torch.allclose(*model(one))  # the same for both images
    assert torch.equal(patched, known) and not torch.equal(patched, model(one))


def test_gradients_flow_into_a_replacement_as_through_its_formula():
    model = draw(minivit_vit()).eval().double()
    images = torch.randn(B, 3, 24, 24, dtype=torch.float64)
    tokens = 10  # with the class token
    scores = torch.randn(HEADS, tokens, tokens, dtype=torch.float64, requires_grad=True)
    with minivit.replace(model, {"blocks.0.attention.weights": scores.softmax(-1)}):
        (found,) = torch.autograd.grad(model(images).square().sum(), scores)
    attention = model.blocks[0].attention

    def by_hand(x, mask=None):
        v = F.linear(x, attention.qkv.weight[-24:], attention.qkv.bias[-24:])
        z = scores.softmax(-1) @ v.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        return attention.out(z.transpose(1, 2).flatten(2))

    attention.forward = by_hand
    (known,) = torch.autograd.grad(model(images).square().sum(), scores)
    close(found, known, 1e-12)


def test_other_threads_run_the_model_as_it_is():
    model = draw(minivit_vit()).eval()
    images = torch.randn(B, 3, 24, 24)
    with torch.no_grad():
        plain = model(images)
        elsewhere = []

        def run():
            with torch.no_grad():
                elsewhere.append(model(images))

        nothing = {"blocks.*.attention.weights": lambda w: 0 * w, "blocks.2": lambda x: 2 * x}
        with minivit.replace(model, nothing):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            assert not torch.allclose(model(images), plain)
    assert torch.equal(elsewhere[0], plain) and torch.equal(model(images), plain)


class Folded(nn.Module):
    """Attention in which heads and images share an axis."""

    def forward(self, x):
        x = x.flatten(0, 1)
        return (x @ x.mT).softmax(-1) @ x


def test_refusals():
    model, images = minivit_vit().eval(), torch.randn(B, 3, 24, 24)

    def run(replacements, model=model, x=images):
        with minivit.replace(model, replacements):
            model(x)

    weights = "blocks.0.attention.weights"
    folded = nn.Sequential(Folded())
    assert_refused(
        [
            (lambda: run({"blocks.9": images}), LookupError, "near names"),
            (
                lambda: run({weights: torch.ones(4, 4)}),
                ValueError,
                r"\[2, 3, 10, 10\].*got \[4, 4\]",
            ),
            (lambda: run({"blocks.0": lambda x: 3.0}), ValueError, "got float"),
            (lambda: run({weights: None}), TypeError, "a tensor or a function.*NoneType"),
            (lambda: run({"blocks": images}), LookupError, "no module matches"),
            (
                lambda: run({"0.weights": torch.ones(())}, folded, torch.ones(2, 3, 4, 4)),
                RuntimeError,
                "nothing was replaced for '0.weights', which shows no attention weights",
            ),
            (
                lambda: run({"blocks.0.mlp.weights": torch.ones(())}),
                RuntimeError,
                "nothing was replaced for 'blocks.0.mlp.weights'",
            ),
        ]
    )


@pytest.mark.parametrize("pattern", ["blocks.*.attention.weights", "blocks.?"])
def test_a_pattern_replaces_all_that_it_names(pattern):
    model = draw(minivit_vit()).eval()
    met = []
    with minivit.replace(model, {pattern: lambda x: met.append(x.shape) or x}):
        model(torch.randn(B, 3, 24, 24))
    assert len(met) == DEPTH
