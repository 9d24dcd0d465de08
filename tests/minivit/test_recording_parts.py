"""Queries, keys, values, scores and heads of everybody's attention, fused and written out."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from minivit import record, replace
from minivit.listening import KINDS
from tests.minivit.test_recording_attention import HEADS, close, every_model, setup, tensors
from tests.parity import Function, given

B, N, WIDTH = 2, 7, 4


@every_model
def test_the_parts_of_attention_make_one_another_and_are_those_that_the_model_goes_on_with(name):
    model, images, names, _ = setup(name)
    one, all_of_them = f"{names[1]}.", [f"*.{kind}" for kind in KINDS]
    with record(model, *all_of_them) as seen:
        logits = given(model(images))
    assert {*seen} == {f"{at}.{kind}" for at in names for kind in KINDS}
    queries, keys, values, scores, weights, heads = (seen[one + kind] for kind in KINDS)
    assert queries.shape == keys.shape == values.shape == heads.shape == (*scores.shape[:3], 8)
    scaled = 1 if name == "timm explicit" else math.sqrt(8)  # its queries are scaled before
    close(scores, queries @ keys.mT / scaled, 1e-6)
    close(weights, scores.softmax(-1), 1e-6)
    close(heads, weights.to(values) @ values, 1e-6)
    gradients = torch.autograd.grad(logits[0, 1], list(seen.values()))
    assert all(gradient.any() for gradient in gradients)
    slopes = dict(zip(seen, gradients, strict=True))
    above = slopes[one + "heads"]
    close(slopes[one + "values"], weights.to(above).mT @ above, 1e-6)
    close(slopes[one + "weights"], above @ values.mT, 1e-6)


@every_model
@pytest.mark.parametrize("kind", KINDS)
def test_each_part_is_replaced_by_itself_without_change_and_by_another_images_with_it(name, kind):
    model, images, names, _ = setup(name)
    with torch.no_grad():
        with record(model, "*." + kind, f"{names[1]}.heads") as seen:
            plain = given(model(images))
        with replace(model, dict(seen)), record(model, f"{names[1]}.weights") as weights:
            close(given(model(images)), plain, 1e-6)
        one = f"{names[1]}.{kind}"
        with replace(model, {one: seen[one].flip(0)}), record(model, one, *weights) as after:
            changed = given(model(images))
    assert torch.equal(after[one], seen[one].flip(0))
    assert (changed - plain).abs().max() > 1e-4
    before = kind in ("queries", "keys", "scores", "weights")
    moved = (after[f"{names[1]}.weights"] - weights[f"{names[1]}.weights"]).abs().max() > 1e-6
    assert moved == before


def test_a_wildcard_records_the_attention_of_the_innermost_modules_alone():
    model, images, names, _ = setup("timm fused")
    with record(model, "*.weights", "blocks.1.weights") as seen:
        model(images)
    assert {*seen} == {"blocks.1.weights", *(f"{name}.weights" for name in names)}
    assert seen["blocks.1.weights"] is seen[f"{names[1]}.weights"]
    said = r"no attention weights were computed for '\*norm\*.weights'"
    with pytest.raises(RuntimeError, match=said), record(model, "*norm*.weights"):
        model(images)


def test_what_was_recorded_can_be_saved_loaded_and_put_back(tmp_path):
    model, images, _, _ = setup("minivit")
    with torch.no_grad():
        with record(model, "blocks.0", "*.weights", "*.queries", detach=True) as seen:
            plain = model(images)
        torch.save(seen, tmp_path / "cache.pt")
        with replace(model, torch.load(tmp_path / "cache.pt")):
            assert torch.equal(model(torch.zeros_like(images)), plain)


def by_einsum(queries, keys):
    """Tokens before heads: attention of [batch, tokens, heads, width], as many write it."""

    def attention(q, k, v):
        weights = (torch.einsum(f"{queries},{keys}", q, k) / 2).softmax(3)
        return torch.einsum("b i h j, b j h d -> b i h d", weights, v)

    return attention


def heads_first(attention):
    """The same, called with tokens before heads."""
    return lambda *qkv: attention(*(x.transpose(1, 2) for x in qkv)).transpose(1, 2)


def attended(q, k, v):
    """The weights and the mean of values, with heads first, by definition."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT / 2
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return dict(zip(KINDS, (q, k, v, scores, weights, weights @ v), strict=True))


def tokens_first(q, k, v):
    scores = torch.stack([q[:, :, h] @ k[:, :, h].mT / 2 for h in range(HEADS)], 2)
    return (scores.softmax(-1)[..., None] * v.transpose(1, 2)[:, None]).sum(3)


in_logarithms = heads_first(lambda q, k, v: (q @ k.mT / 2).log_softmax(-1).exp() @ v)
WAYS = {
    "einsum": by_einsum("b i h d", "b j h d -> b i h j"),
    "torch's einsum": by_einsum("bihd", "bjhd->bihj"),
    "keys first": heads_first(lambda q, k, v: (k @ q.mT / 2).softmax(-2).mT @ v),
    "in logarithms": in_logarithms,
    "a gate before": lambda q, k, v: in_logarithms(q, k, v + 0 * v.softmax(-1)),
    "a gate after": lambda *qkv: (y := in_logarithms(*qkv)) + 0 * y.softmax(-1),
    "dropout": heads_first(lambda q, k, v: F.dropout((q @ k.mT / 2).softmax(-1), 0.0) @ v),
}


@pytest.mark.parametrize("way", WAYS)
def test_attention_is_recorded_with_heads_before_queries_however_it_is_written(way):
    q, k, v = inputs = tensors(*[(B, N, HEADS, WIDTH)] * 3)
    module, known = Function(WAYS[way]), attended(q, k, v)
    missing = {"queries", "keys"} if way == "keys first" else set()
    kinds = [kind for kind in KINDS if kind not in missing]
    with record(module, *kinds) as seen:
        output = module(*inputs)
    torch.testing.assert_close(output.transpose(1, 2), known["heads"])
    for kind in kinds:
        torch.testing.assert_close(seen[kind], known[kind])
    gradients = torch.autograd.grad(output[0].sum(), list(seen.values()))
    assert all(gradient.any() and not gradient[1].any() for gradient in gradients)
    if way == "a gate before":  # it is passed on before the attention is seen
        missing = {"weights"}
    else:
        with replace(module, {"weights": torch.zeros_like}):
            assert not module(*inputs).any()
    for kind in missing:
        said = "more than once" if kind == "weights" else "replaced in a product that no softmax"
        with pytest.raises(RuntimeError, match=said), replace(module, {kind: torch.zeros_like}):
            module(*inputs)


def test_weights_without_a_known_product_have_queries_where_there_are_as_many_as_keys():
    q, k, v = inputs = tensors(*[(B, N, HEADS, WIDTH)] * 3)
    module = Function(tokens_first)
    with record(module, "weights", "scores") as seen:
        output = module(*inputs)
    torch.testing.assert_close(seen["weights"], attended(q, k, v)["weights"])
    torch.testing.assert_close(seen["scores"], attended(q, k, v)["scores"])
    assert torch.autograd.grad(output.sum(), seen["weights"])[0].any()


def test_two_attentions_in_one_module_and_products_that_cannot_be_told_are_refused():
    inputs = tensors(*[(B, HEADS, N, WIDTH)] * 3)
    for attention, kind, said in (
        (lambda q, k, v: (q @ k.mT).softmax(-1) @ v - (k @ q.mT).softmax(-1) @ v, "weights", "more than once for '' in one call.*differential attention"),
        # As in ConViT: part of the weights are of the positions alone.
        (lambda q, k, v: ((q @ k.mT).softmax(-1) + torch.zeros(N, N).expand(B, HEADS, N, N).softmax(-1)) @ v, "weights", "more than once for '' in one call"),
        (lambda q, k, v: (q @ k.mT + q @ v.mT).softmax(-1) @ v, "queries", "of '' were replaced in a product that no softmax followed"),
        (lambda q, k, v: q @ k.mT, "keys", "of '' were replaced in a product that no softmax"),
    ):  # fmt: skip
        module = Function(attention)
        with pytest.raises(RuntimeError, match=said), replace(module, {kind: torch.zeros_like}):
            module(*inputs)
        assert module(*inputs) is not None


@pytest.mark.parametrize("name", ["timm fused", "huggingface eager", "torchvision"])
def test_attention_is_recorded_where_another_library_has_wrapped_torch(name, monkeypatch):
    model, images, _, _ = setup(name)
    with record(model, "*.weights") as known:
        model(images)
    for holder, function in (
        (F, "scaled_dot_product_attention"),
        (F, "softmax"),
        (torch, "softmax"),
        (torch.Tensor, "softmax"),
        (torch, "matmul"),
    ):
        own = partial(getattr(holder, function))  # a function, not a method
        wrapped = lambda *args, own=own, **how: own(*args, **how)  # noqa: E731
        wrapped.__name__ = function
        monkeypatch.setattr(holder, function, wrapped)
    with record(model, "*.weights", "*.heads") as seen:
        model(images)
    assert len(seen) == 2 * len(known) and all(seen[key].equal(known[key]) for key in known)
    monkeypatch.setattr("minivit.attention.MULTI_HEAD", lambda *args: None)
    if name == "torchvision":
        said = "has replaced torch's functions: import minivit before"
        with pytest.raises(RuntimeError, match=said), record(model, "*.weights"):
            model(images)
