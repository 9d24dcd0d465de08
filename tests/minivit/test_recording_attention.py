"""Attention weights of everybody's models, each against softmax(q k' / sqrt(d)) made by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

import minivit
from minivit import record, replace
from tests.parity import Function, draw, given
from tests.refusals import unchecked
from tests.vitlab.instruments import models as everybody
from tests.vitlab.tried.by_hand import ends

B, N, DIM, HEADS, DEPTH = 2, 7, 24, 3, 2  # N tokens where no image gives them


def packed(weight, bias):
    """The weights of queries and keys, then their biases, where one map gives all."""
    return *weight[: 2 * DIM].chunk(2), *bias[: 2 * DIM].chunk(2)


# Whose the model is, and the maps of its attention to queries and keys.
MODELS = {
    "minivit": ("minivit class", lambda a: packed(a.qkv.weight, a.qkv.bias)),
    "torchvision": ("torchvision", lambda a: packed(a.in_proj_weight, a.in_proj_bias)),
    **dict.fromkeys(["timm fused", "timm explicit"], ("timm", lambda a: packed(*a.qkv.parameters()))),
    **dict.fromkeys(
        ["huggingface sdpa", "huggingface eager"],
        ("huggingface", lambda a: (a.q_proj.weight, a.k_proj.weight, a.q_proj.bias, a.k_proj.bias)),
    ),
}  # fmt: skip
every_model = pytest.mark.parametrize("name", MODELS)


def setup(name, dtype=torch.float64):
    """A model, images, the names of its attentions, and their maps to queries and keys."""
    whose, maps = MODELS[name]
    model, images, _ = everybody.everybodys(whose)
    if whose == "timm":
        for block in model.blocks:
            block.attn.fused_attn = name == "timm fused"
    if whose == "huggingface":
        model.set_attn_implementation(name.split()[1])
    _, block, attention, _ = everybody.MODELS[whose]
    names = [f"{block.format(i)}.{attention}" for i in range(DEPTH)]
    return model.to(dtype).requires_grad_(), images.to(dtype), names, maps


def weights_of(names):
    return [f"{name}.weights" for name in names]


def exact(name):
    """Hugging Face's eager attention takes its softmax in float32 whatever the model's precision."""
    return 1e-6 if name == "huggingface eager" else 1e-10


def by_hand(x, maps):
    """Weights from an attention module's input ``[batch, tokens, dim]`` and its own parameters."""
    w_q, w_k, b_q, b_k = maps
    tokens = x @ w_q.T + b_q, x @ w_k.T + b_k
    q, k = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in tokens)
    weights = (torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(DIM // HEADS)).exp()
    return weights / weights.sum(-1, keepdim=True)


def close(a, b, relative):
    assert b.abs().max() > 1e-3  # a comparison with zeros says nothing
    assert (a - b).abs().max() <= relative * b.abs().max()


@every_model
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_weights_are_those_made_by_hand_in_nested_records_and_outputs_stay(name, training, grad):
    """Of kernels that give none, too: huggingface/transformers#30978."""
    model, images, names, maps = setup(name)
    model.train(training)
    with torch.set_grad_enabled(grad):
        plain, inputs = given(model(images)), ends(model, images, names)
        first, second = weights_of(names)
        with record(model, first, second) as seen, record(model, second) as inner:
            recorded = given(model(images))
    close(recorded, plain, 1e-12)
    assert list(seen) == [first, second] and list(inner) == [second]
    assert inner[second] is seen[second]
    for (attention, (x, _)), weights in zip(inputs.items(), seen.values(), strict=True):
        assert weights.shape == (B, HEADS, x.shape[1], x.shape[1])
        close(weights, by_hand(x, maps(model.get_submodule(attention))), exact(name))
        assert weights.max() > 3 / x.shape[1] and weights.min() >= 0
        assert weights.requires_grad == grad


@every_model
def test_gradients_are_the_models_through_the_weights_and_in_the_second_order(name):
    """The queries of a block reach the logits through its weights alone: the chain rule is exact."""
    model, images, names, _ = setup(name)
    images.requires_grad_()

    def derivatives():
        logit = given(model(images))[0, 1]
        (first,) = torch.autograd.grad(logit, images, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), images, retain_graph=True)
        return logit, first, second

    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no second derivative on the CPU
        plain = derivatives()
    with record(model, *weights_of(names)) as seen:
        logit, *_ = recorded = derivatives()
    for a, b in zip(recorded, plain, strict=True):
        close(a, b, exact(name))
    gradients = torch.autograd.grad(logit, list(seen.values()), retain_graph=True)
    for module, weights, gradient in zip(names, seen.values(), gradients, strict=True):
        query = next(model.get_submodule(module).parameters())  # its first rows are the queries'
        (direct,) = torch.autograd.grad(logit, query, retain_graph=True)
        (through,) = torch.autograd.grad(weights, query, gradient, retain_graph=True)
        close(through[:DIM], direct[:DIM], exact(name))
        assert gradient[1].abs().max() == 0  # the logit of the first image


@every_model
@pytest.mark.parametrize(
    ("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.01)]
)
@pytest.mark.parametrize("grad", [False, True])  # minivit may take another path with gradients
def test_lower_precisions(name, dtype, relative, grad):
    model, images, names, _ = setup(name, dtype)
    with torch.set_grad_enabled(grad):
        plain = given(model(images))
        with record(model, *weights_of(names), *names) as seen:
            recorded = given(model(images))
    assert recorded.dtype == dtype and len(seen) == 2 * DEPTH
    close(recorded.float(), plain.float(), relative)
    for key in weights_of(names):
        assert (seen[key].float().sum(-1) - 1).abs().max() < relative


def tensors(*shapes):
    g = torch.Generator().manual_seed(0)
    return [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in shapes]


SOME = torch.rand(B, 1, 5, N, generator=torch.Generator().manual_seed(1)) > 0.4
NONE_FOR_ONE = SOME & (torch.arange(5) > 0)[:, None]


@pytest.mark.parametrize("options", [
    {},
    {"attn_mask": SOME},
    {"attn_mask": NONE_FOR_ONE},
    {"attn_mask": torch.where(NONE_FOR_ONE, 0.5, -math.inf).double()},
    {"attn_mask": torch.linspace(-1, 1, 5 * N).double().view(5, N)},
    {"is_causal": True},
    {"scale": 0.7},
    {"enable_gqa": True},
    {"dropout_p": 0.4},
])  # fmt: skip
def test_every_option_of_scaled_dot_product_attention(options):
    kv = 2 if "enable_gqa" in options else 6
    inputs = tensors((B, 6, 5, 4), (B, kv, N, 4), (B, kv, N, 3))
    module = Function(F.scaled_dot_product_attention)
    torch.manual_seed(3)
    with sdpa_kernel(SDPBackend.MATH):
        plain = module(*inputs, **options)
    torch.manual_seed(3)
    with record(module, "weights") as seen:
        recorded = module(*inputs, **options)
    assert seen["weights"].shape == (B, 6, 5, N)
    close(recorded, plain, 1e-12)
    sums = seen["weights"].sum(-1).detach()
    nothing = torch.zeros_like(sums, dtype=torch.bool)  # queries that may attend to no key
    if (mask := options.get("attn_mask")) is not None:
        nothing |= ~(mask if mask.dtype == torch.bool else mask > -math.inf).any(-1)
    assert ((sums - (~nothing).double()).abs() < 1e-12).all()
    g = torch.linspace(-1, 1, plain.numel()).double().view_as(plain)
    for a, b in zip(*(torch.autograd.grad(z, inputs, g) for z in (recorded, plain)), strict=True):
        assert a.isfinite().all()
        close(a, b, 1e-11)


ALLOWED = torch.ones(N, N, dtype=torch.bool).tril()


@pytest.mark.parametrize(("made", "called"), [
    ({}, {}),
    ({}, {"average_attn_weights": False}),
    ({"batch_first": True}, {"need_weights": False}),
    ({"bias": False, "kdim": 5, "vdim": 6}, {}),
    ({"add_bias_kv": True, "add_zero_attn": True}, {"need_weights": False}),
    ({}, {"attn_mask": ~ALLOWED}),
    ({}, {"attn_mask": ~ALLOWED, "is_causal": True, "need_weights": False}),
    ({}, {"attn_mask": torch.linspace(-1, 1, N * N).double().view(N, N), "need_weights": False}),
    ({"batch_first": True}, {"key_padding_mask": torch.arange(N).expand(B, N) > 4, "need_weights": False}),
    ({"dropout": 0.4}, {"average_attn_weights": False}),
    ({"dropout": 0.4}, {"need_weights": False}),
    ({}, {"unbatched": True}),
])  # fmt: skip
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_every_option_of_torchs_multi_head_attention(made, called, training, grad):
    called = dict(called)
    batch = (N,) if called.pop("unbatched", False) else (B, N) if "batch_first" in made else (N, B)
    module = draw(nn.MultiheadAttention(8, 2, **made).double()).train(training).requires_grad_()
    x, k, v = tensors((*batch, 8), (*batch, made.get("kdim", 8)), (*batch, made.get("vdim", 8)))
    args = (x, k, v) if "kdim" in made else (x, x, x)  # the fast path is for self-attention
    kernel = SDPBackend.MATH if "dropout" in made else list(SDPBackend.__members__.values())
    with torch.set_grad_enabled(grad):
        torch.manual_seed(3)
        with sdpa_kernel(kernel):
            plain, plain_weights = module(*args, **called)
        torch.manual_seed(3)
        with record(module, "weights") as seen:
            recorded, recorded_weights = module(*args, **called)
    close(recorded, plain, 1e-12)
    weights = seen["weights"]
    assert weights.shape == (B if batch[1:] else 1, 2, N, N + 2 * ("add_bias_kv" in made))
    assert (weights.sum(-1) - 1).abs().max() < 1e-12  # before dropout
    assert (plain_weights is None) == (recorded_weights is None)
    if plain_weights is not None:  # the caller gets what it asked for
        close(recorded_weights, plain_weights, 1e-12)
        if "dropout" not in made:
            shown = weights if "average_attn_weights" in called else weights.mean(1)
            close(shown.view_as(plain_weights), plain_weights, 1e-12)
    if grad:
        (gradient,) = torch.autograd.grad(recorded.square().sum(), weights)
        assert gradient.abs().max() > 0.01


def test_torchs_encoder_leaves_its_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = draw(nn.TransformerEncoder(layer, 2).double()).eval()
    (x,) = tensors((B, N, 8))
    with torch.no_grad():
        plain = encoder(x)
        with record(encoder, "layers.*.self_attn.weights", "layers.*.linear1") as seen:
            recorded = encoder(x)
        with record(encoder, "layers.1.linear2") as without_attention:
            encoder(x)
    close(recorded, plain, 1e-12)
    assert len(seen) == 4 and len(without_attention) == 1
    assert seen["layers.1.self_attn.weights"].shape == (B, 2, N, N)


def test_a_softmax_that_is_written_out_in_each_of_several_calls_but_not_behind_a_failure():
    (scores,) = tensors((B, HEADS, N, N))
    named = lambda s: torch.softmax(s, dim=3)  # noqa: E731
    for softmax in (lambda s: s.softmax(-1), named, lambda s: F.softmax(s, -1), nn.Softmax(-1)):
        part, fails = Function(softmax), Function(lambda s, softmax=softmax: softmax(s).view(0))
        model = nn.ModuleList([fails, part])
        with record(model, "0.weights", "1.weights") as seen:
            pytest.raises(RuntimeError, fails, scores).match("invalid for input")
            last = part(part(scores) + 1)
        assert torch.equal(seen["0.weights"], scores.softmax(-1))
        assert torch.equal(seen["1.weights"], last)


def test_weights_that_cannot_be_told_are_an_error_that_names_them():
    def softmax(scores):
        return scores.softmax(-1)

    unseen = r"no attention weights were computed for \['mlp.weights'\].*\['attn.weights'\]"
    for function, shape, said in (
        (lambda s: s.softmax(1), (B, HEADS, 5, N), unseen),  # over heads
        (lambda s: s, (B, HEADS, 5, N), unseen),
        (softmax, (6, 5, N), r"the softmax in \['mlp.weights'\] has \[\[6, 5, 7\]\].*cannot be told"),
        (softmax, (B, 1, HEADS, 5, N), r"has \[\[2, 1, 3, 5, 7\]\].*cannot be told apart"),
        (lambda s: softmax(softmax(s)), (B, HEADS, 5, N), "more than once for 'mlp' in one"),
    ):  # fmt: skip
        model = nn.ModuleDict({"mlp": Function(function), "attn": Function(softmax)})
        with pytest.raises(RuntimeError, match=said), record(model, "mlp.weights", "attn.weights"):
            model["attn"](torch.rand(B, HEADS, 5, N))
            model["mlp"](torch.rand(shape))


def test_weights_of_a_kernel_without_any_are_refused_in_words():
    module, q = Function(flex_attention), torch.rand(1, 2, 16, 16)
    said = "choose the model's eager or sdpa"
    with pytest.raises(Exception, match=said), record(module, "weights"):
        module(q, q, q)


def of_compiled_blocks(model):
    for i, block in enumerate(model.blocks):
        model.blocks[i] = torch.compile(block, backend="eager")
    return model


COMPILED = {
    "blocks in place": lambda m: [block.compile(backend="eager") for block in m.blocks] and m,
    "blocks replaced": of_compiled_blocks,
    "a function around": lambda m: torch.compile(lambda x: m(x), backend="eager"),
}


@pytest.mark.parametrize("how", COMPILED)
def test_what_is_recorded_of_parts_after_a_compiled_call_is_what_runs(how):
    """pytorch#117758, pytorch#96722."""
    model, images, names, _ = setup("minivit")
    wanted = "blocks.1*", f"blocks.1*{weights_of(names)[1].removeprefix('blocks.1')}"
    with unchecked(), torch.no_grad():
        with record(model, *wanted) as known:
            model(images)
        call = COMPILED[how](model)
        call(images.flip(0))
        with record(model, *wanted) as seen:
            call(images)
    found = {name.replace("._orig_mod", ""): tensor for name, tensor in seen.items()}
    assert known.keys() <= found.keys()
    assert any("_orig_mod" in name for name in seen) == (how == "blocks replaced")
    for name, tensor in known.items():
        close(found[name], tensor, 1e-12)
    torch.compiler.reset()


@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_models_are_recorded_under_their_own_names_and_not_compiled_again(in_place):
    model, images, names, _ = setup("minivit")
    compilations = []

    def backend(graph, inputs):
        compilations.append(graph)
        return graph.forward

    with unchecked(), torch.no_grad():  # the compiler would trace the checks
        plain = model(images)
        compiled = model if in_place else torch.compile(model, backend=backend)
        if in_place:
            model.compile(backend=backend)
        close(compiled(images), plain, 1e-12)
        assert (count := len(compilations)) > 0
        for wanted in ("blocks.1", ""), ("blocks.1", "", *weights_of(names)):
            with record(compiled, *wanted) as seen:
                close(compiled(images), plain, 1e-12)
            assert len(seen) == len(wanted)
            close(seen[""], plain, 1e-12)
        with replace(compiled, {"blocks.1": torch.zeros_like}):
            assert torch.equal(*compiled(images))  # nothing of the images is left
        compiled(images)
    assert len(compilations) == count


def test_autocast_does_not_round_what_is_recorded():
    torch.manual_seed(0)
    layer = minivit.MultiHeadAttention(64, 4)
    x = 3 * torch.randn(1, 64, 64)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        plain = layer(x)
        with record(layer, "weights") as seen:
            recorded = layer(x)
    assert seen["weights"].dtype == torch.float32
    assert (seen["weights"].sum(-1) - 1).abs().max() < 1e-5
    exact = layer(x).detach()
    assert (recorded - exact).abs().max() < 1.5 * (plain - exact).abs().max()
