"""Attention weights of everybody's models, each against softmax(q k' / sqrt(d)) made by hand."""

import math
from functools import partial

import pytest
import timm
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import ViTConfig, ViTModel

import minivit
from minivit.recording import record
from tests.refusals import unchecked

B, N, DIM, HEADS, DEPTH = 2, 7, 24, 3, 3  # N tokens where no image gives them


def randomized(model, dtype=torch.float64):
    """Parameters away from their zeros and ones, so that no weight is close to 1 / tokens."""
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        draw = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim > 1:
            parameter.data = 1.5 * draw / math.sqrt(draw[0].numel())
        else:
            parameter.data = name.endswith("weight") + 0.3 * draw
    return model.to(dtype).eval()


def minivit_vit():
    sizes = {"image_size": 24, "patch_size": 8, "dim": DIM, "depth": DEPTH, "heads": HEADS}
    return minivit.create("vit_b_32", mlp_ratio=2, classes=5, **sizes)


def torchvision_vit():
    return torchvision.models.VisionTransformer(24, 8, DEPTH, HEADS, DIM, 2 * DIM, num_classes=5)


def timm_vit(fused):
    sizes = {"patch_size": 8, "embed_dim": DIM, "depth": DEPTH, "num_heads": HEADS}
    model = timm.create_model("vit_tiny_patch16_224", img_size=24, num_classes=5, **sizes)
    for block in model.blocks:
        block.attn.fused_attn = fused
    return model


def huggingface_vit(implementation):
    sizes = {"image_size": 24, "patch_size": 8, "hidden_size": DIM, "intermediate_size": 2 * DIM,
             "num_hidden_layers": DEPTH, "num_attention_heads": HEADS}  # fmt: skip
    return ViTModel(ViTConfig(**sizes, attn_implementation=implementation))


def packed(weight, bias):
    return lambda a: (*weight(a)[: 2 * DIM].chunk(2), *bias(a)[: 2 * DIM].chunk(2))


qkv = packed(lambda a: a.qkv.weight, lambda a: a.qkv.bias)
in_proj = packed(lambda a: a.in_proj_weight, lambda a: a.in_proj_bias)


def q_proj(a):
    return a.q_proj.weight, a.k_proj.weight, a.q_proj.bias, a.k_proj.bias


# What builds the model, its attention modules' names, and their maps to queries and keys.
MODELS = {
    "minivit": (minivit_vit, "blocks.{}.attention", qkv),
    "torchvision": (torchvision_vit, "encoder.layers.encoder_layer_{}.self_attention", in_proj),
    "timm fused": (partial(timm_vit, True), "blocks.{}.attn", qkv),
    "timm explicit": (partial(timm_vit, False), "blocks.{}.attn", qkv),
    "huggingface sdpa": (partial(huggingface_vit, "sdpa"), "layers.{}.attention", q_proj),
    "huggingface eager": (partial(huggingface_vit, "eager"), "layers.{}.attention", q_proj),
}
every_model = pytest.mark.parametrize("name", MODELS)


def setup(name, dtype=torch.float64):
    make, module, maps = MODELS[name]
    torch.manual_seed(0)
    images = torch.randn(B, 3, 24, 24, generator=torch.Generator().manual_seed(1), dtype=dtype)
    return randomized(make(), dtype), images, module, maps


def logits(output):
    return output if isinstance(output, torch.Tensor) else output.last_hidden_state[:, 0]


def by_hand(x, maps):
    """Weights from an attention module's input ``[batch, tokens, dim]`` and its own parameters."""
    w_q, w_k, b_q, b_k = maps
    q, k = (
        (x @ w.T + b).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        for w, b in ((w_q, b_q), (w_k, b_k))
    )
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(DIM // HEADS)
    weights = scores.exp()
    return weights / weights.sum(-1, keepdim=True)


def close(a, b, relative):
    assert b.abs().max() > 1e-3  # a comparison with zeros says nothing
    assert (a - b).abs().max() <= relative * b.abs().max()


@every_model
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_weights_are_those_made_by_hand_and_outputs_stay(name, training, grad):
    model, images, module, maps = setup(name)
    model.train(training)
    inputs = []
    attentions = [model.get_submodule(module.format(i)) for i in range(DEPTH)]
    hooks = [
        a.register_forward_pre_hook(lambda _, args, kw: inputs.append((*args, *kw.values())[0]), with_kwargs=True)
        for a in attentions
    ]  # fmt: skip
    with torch.set_grad_enabled(grad):
        plain = logits(model(images))
        for hook in hooks:
            hook.remove()
        with record(model, module.format("*") + ".weights") as seen:
            recorded = logits(model(images))
    # Hugging Face's eager attention takes its softmax in float32 whatever the model's precision.
    exact = 1e-6 if name == "huggingface eager" else 1e-12
    close(recorded, plain, 1e-12)
    assert list(seen) == [f"{module.format(i)}.weights" for i in range(DEPTH)]
    for x, attention, weights in zip(inputs, attentions, seen.values(), strict=True):
        assert weights.shape == (B, HEADS, x.shape[1], x.shape[1])
        close(weights, by_hand(x, maps(attention)), exact)
        assert weights.max() > 3 / x.shape[1] and weights.min() >= 0
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert weights.requires_grad == grad


@every_model
def test_gradients_with_respect_to_weights_are_the_models(name):
    """The queries of a block reach the logits through its weights alone: the chain rule is exact."""
    model, images, module, maps = setup(name)
    with record(model, module.format("*") + ".weights") as seen:
        logit = logits(model(images))[0, 1]
    weights = list(seen.values())
    for i, gradient in enumerate(torch.autograd.grad(logit, weights, retain_graph=True)):
        parameter = list(model.get_submodule(module.format(i)).parameters())[0]  # all or a third: q
        direct, through = (
            torch.autograd.grad(y, parameter, g, retain_graph=True)[0][:DIM]
            for y, g in ((logit, None), (weights[i], gradient))
        )
        close(through, direct, 1e-6 if name == "huggingface eager" else 1e-10)
        assert gradient[1].abs().max() == 0  # the logit of the first image


@every_model
def test_recording_leaves_gradients_and_second_derivatives_as_they_are(name):
    model, images, module, _ = setup(name)
    images.requires_grad_()

    def derivatives():
        (first,) = torch.autograd.grad(logits(model(images))[0, 1], images, create_graph=True)
        return first, torch.autograd.grad(first.square().sum(), images)[0]

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        plain = derivatives()  # the fused kernel has no second derivative on the CPU
    with record(model, module.format("*") + ".weights"):
        recorded = derivatives()
    for a, b in zip(recorded, plain, strict=True):
        close(a, b, 1e-6 if name == "huggingface eager" else 1e-10)


@every_model
@pytest.mark.parametrize(
    ("dtype", "relative"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.01)]
)
@pytest.mark.parametrize("grad", [False, True])  # minivit may take another path with gradients
def test_lower_precisions(name, dtype, relative, grad):
    model, images, module, _ = setup(name, dtype)
    with torch.set_grad_enabled(grad):
        plain = logits(model(images))
        with record(model, module.format("*") + ".weights", module.format("*")) as seen:
            recorded = logits(model(images))
    assert recorded.dtype == dtype and len(seen) == 2 * DEPTH
    close(recorded.float(), plain.float(), relative)
    for key, weights in seen.items():
        if key.endswith(".weights"):
            assert (weights.float().sum(-1) - 1).abs().max() < relative


@every_model
def test_nested_records_get_the_same_weights(name):
    model, images, module, _ = setup(name)
    names = [f"{module.format(i)}.weights" for i in range(DEPTH)]
    with record(model, names[0], names[1]) as outer, record(model, names[1], names[2]) as inner:
        model(images)
    assert list(outer) == names[:2] and list(inner) == names[1:]
    assert outer[names[1]] is inner[names[1]]


class Kernels(TorchDispatchMode):
    """Counts fused attentions."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += "attention" in str(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["torchvision", "timm fused", "huggingface sdpa"])
def test_only_what_is_asked_for_leaves_the_fused_kernel(name):
    model, images, module, _ = setup(name)
    with torch.no_grad(), record(model, f"{module.format(1)}.weights"), Kernels() as kernels:
        model(images)
    assert kernels.count == DEPTH - 1


class Calls(nn.Module):
    """A module around a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def tensors(*shapes):
    g = torch.Generator().manual_seed(0)
    return [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in shapes]


SOME = torch.rand(B, 1, 5, N, generator=torch.Generator().manual_seed(1)) > 0.4
NONE_FOR_ONE = SOME & (torch.arange(5) > 0)[:, None]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attn_mask": SOME},
        {"attn_mask": NONE_FOR_ONE},
        {"attn_mask": torch.where(NONE_FOR_ONE, 0.5, -math.inf).double()},
        {"attn_mask": torch.linspace(-1, 1, 5 * N).double().view(5, N)},
        {"is_causal": True},
        {"scale": 0.7},
        {"enable_gqa": True},
        {"dropout_p": 0.4},
    ],
)
def test_every_option_of_scaled_dot_product_attention(options):
    kv = 2 if "enable_gqa" in options else 6
    inputs = tensors((B, 6, 5, 4), (B, kv, N, 4), (B, kv, N, 3))
    module = Calls(F.scaled_dot_product_attention)
    torch.manual_seed(3)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_fused_attention_in_half_precision_takes_its_softmax_in_float32(dtype):
    q, k, v = (3 * t.detach().to(dtype) for t in tensors((B, 6, 5, 4), (B, 6, N, 4), (B, 6, N, 3)))
    module = Calls(F.scaled_dot_product_attention)
    with record(module, "weights") as seen:
        recorded = module(q, k, v)
    assert seen["weights"].dtype == torch.float32 and recorded.dtype == dtype
    close(seen["weights"], (q.double() @ k.double().mT / 2).softmax(-1), 1e-5)


ALLOWED = torch.ones(N, N, dtype=torch.bool).tril()


@pytest.mark.parametrize(
    ("made", "called"),
    [
        ({}, {}),
        ({}, {"need_weights": False}),
        ({}, {"average_attn_weights": False}),
        ({"batch_first": True}, {"need_weights": False}),
        ({"bias": False, "kdim": 5, "vdim": 6}, {}),
        ({"add_bias_kv": True, "add_zero_attn": True}, {"average_attn_weights": False}),
        ({"add_bias_kv": True, "add_zero_attn": True}, {"need_weights": False}),
        ({}, {"attn_mask": ~ALLOWED}),
        ({}, {"attn_mask": ~ALLOWED, "is_causal": True, "need_weights": False}),
        ({}, {"attn_mask": torch.linspace(-1, 1, N * N).double().view(N, N), "need_weights": False}),
        ({"batch_first": True}, {"key_padding_mask": torch.arange(N).expand(B, N) > 4, "need_weights": False}),
        ({"dropout": 0.4}, {"average_attn_weights": False}),
        ({"dropout": 0.4}, {"need_weights": False}),
        ({}, {"unbatched": True}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_every_option_of_torchs_multi_head_attention(made, called, training, grad):
    called = dict(called)
    batch = (N,) if called.pop("unbatched", False) else (B, N) if "batch_first" in made else (N, B)
    module = randomized(nn.MultiheadAttention(8, 2, **made)).train(training)
    x, k, v = tensors((*batch, 8), (*batch, made.get("kdim", 8)), (*batch, made.get("vdim", 8)))
    args = (x, k, v) if "kdim" in made else (x, x, x)  # the fast path is for self-attention
    math_kernel = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with torch.set_grad_enabled(grad):
        torch.manual_seed(3)
        with math_kernel if "dropout" in made else torch.enable_grad() if grad else torch.no_grad():
            plain, plain_weights = module(*args, **called)
        torch.manual_seed(3)
        with record(module, "weights") as seen:
            recorded, recorded_weights = module(*args, **called)
    close(recorded, plain, 1e-12)
    weights = seen["weights"]
    extra = 2 * ("add_bias_kv" in made)
    assert weights.shape == (B if len(batch) == 2 else 1, 2, N, N + extra)
    assert (weights.sum(-1) - 1).abs().max() < 1e-12  # before dropout
    assert (plain_weights is None) == (recorded_weights is None)
    if plain_weights is not None:  # the caller gets what it asked for
        close(recorded_weights, plain_weights, 1e-12)
        if "dropout" not in made:
            shown = weights.flatten(0, 1).unflatten(0, weights.shape[:2])
            shown = shown if "average_attn_weights" in called else shown.mean(1)
            close(shown.view_as(plain_weights), plain_weights, 1e-12)
    if grad:
        (gradient,) = torch.autograd.grad(recorded.square().sum(), weights)
        assert gradient.abs().max() > 0.01


def test_torchs_encoder_leaves_its_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = randomized(nn.TransformerEncoder(layer, 2)).requires_grad_(False)
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


@pytest.mark.parametrize(
    "softmax",
    [lambda s: s.softmax(-1), lambda s: torch.softmax(s, dim=3), lambda s: F.softmax(s, -1), nn.Softmax(-1)],
)  # fmt: skip
def test_a_softmax_that_is_written_out(softmax):
    (scores,) = tensors((B, HEADS, 5, N))
    model = nn.Sequential(Calls(softmax), nn.Flatten())
    with record(model, "0.weights") as seen:
        model(scores)
    assert torch.equal(seen["0.weights"], scores.softmax(-1))


@pytest.mark.parametrize(
    "function",
    [
        lambda s: s.softmax(1),  # over heads
        lambda s: s.log_softmax(-1).exp(),
        lambda s: s,
    ],
)
def test_weights_that_were_never_shown_are_an_error_that_names_them(function):
    (scores,) = tensors((B, HEADS, 5, N))
    model = nn.ModuleDict({"mlp": Calls(function), "attn": Calls(lambda s: s.softmax(-1))})
    said = r"no attention weights were computed for \['mlp.weights'\].*\['attn.weights'\]"
    with pytest.raises(RuntimeError, match=said), record(model, "mlp.weights", "attn.weights"):
        model["mlp"](scores)
        model["attn"](scores)


@pytest.mark.parametrize("shape", [(B * HEADS, 5, N), (B, 3, HEADS, 5, N)])
def test_a_softmax_without_one_axis_each_for_images_and_heads_is_an_error_that_shows_it(shape):
    (scores,) = tensors(shape)
    model = nn.ModuleDict({"attn": Calls(lambda s: s.softmax(-1))})
    shown = ", ".join(map(str, shape))
    said = rf"the softmax in \['attn.weights'\] has \[\[{shown}\]\].*cannot be told apart"
    with pytest.raises(RuntimeError, match=said), record(model, "attn.weights"):
        model["attn"](scores)


def test_two_attentions_in_one_call_are_an_error_and_in_two_calls_are_not():
    (scores,) = tensors((B, HEADS, N, N))
    part = Calls(lambda s: s.softmax(-1))
    model = nn.Sequential(part, part)
    said = "more than once for 'weights' in one call: name a smaller module"
    with pytest.raises(RuntimeError, match=said), record(model, "weights"):
        model(scores)
    with record(model, "0.weights") as seen:
        y = model(scores)
    assert seen["0.weights"] is y


def test_attention_after_an_exception_that_the_block_catches_is_not_taken_for_the_failed_ones():
    (scores,) = tensors((B, HEADS, N, N))
    fails, other = Calls(lambda s: s.softmax(-1).view(0)), nn.Softmax(-1)
    with record(nn.ModuleList([fails, other]), "0.weights") as seen:
        pytest.raises(RuntimeError, fails, scores).match("invalid for input")
        shown = seen["0.weights"]
        other(scores + 1)
    assert seen["0.weights"] is shown


@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_models_are_recorded_under_their_own_names_and_not_compiled_again(in_place):
    model, images, _, _ = setup("minivit")
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
        for names in ("blocks.1", ""), ("blocks.1", "", "blocks.*.attention.weights"):
            with record(compiled, *names) as seen:
                close(compiled(images), plain, 1e-12)
            assert len(seen) == (2 if len(names) == 2 else 2 + DEPTH)
            close(seen[""], plain, 1e-12)
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


def test_weights_have_their_shape_on_the_meta_device():
    model = minivit.create("vit_32px", dim=16, depth=1, heads=2).to("meta")
    with minivit.record(model, "blocks.*.attention.weights") as seen:
        model(torch.empty(2, 3, 32, 32, device="meta"))
    assert seen["blocks.0.attention.weights"].shape == (2, 2, 64, 64)
