"""Chapter 4: answers that learners might give."""

import re
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


def by_torch(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def without_keepdim(x, weight, bias, eps):
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * weight + bias


def after_both(x, norm1, attention, norm2, mlp):
    """Adds what both branches have written to the stream at the end."""
    heard = attention(norm1(x))
    return heard + mlp(norm2(x + heard)) + x


def in_place_of_branches(x, norm1, attention, norm2, mlp, order):
    y = norm1(x) if order == "parallel" else norm1(attention(x)) + x
    return x + mlp(y) + attention(y) if order == "parallel" else norm2(mlp(y)) + y


def by_picture(branch, rate, training):
    """Decides for one image after the other."""
    if not training or not rate:
        return branch.clone()
    factors = torch.empty(len(branch)).bernoulli_(1 - rate) / (1 - rate)
    return torch.einsum("bnd,b->bnd", branch, factors)


def faulty_drop(
    branch, rate, training, shape=(1, 1), scale=lambda rate: 1 / (1 - rate), always=False
):
    if not training and not always:
        return branch
    return branch * (torch.rand(len(branch), *shape) >= rate) * scale(rate)


def share_kept(branch, rate, training):
    """Takes rate for the probability of keeping: with 0 it divides by zero."""
    if not training:
        return branch
    return branch * (torch.rand(len(branch), 1, 1) < rate) / rate


def norm_less_one(parts, gamma, weight, eps):
    """Shares as the change of a linear map, the divisor frozen."""
    total = parts.sum(0)
    inverse = (total.var(-1, correction=0) + eps).rsqrt()  # [batch]
    centring = torch.eye(len(gamma)) - 1 / len(gamma)
    return torch.einsum("pbd,de,e,ce,b->pbc", parts, centring, gamma, weight, inverse)


def by_encoder_layers(
    images,
    state,
    heads,
    pre=True,
    strict=True,
    error=ValueError,
    quiet=False,
    number=r"blocks\.(\d+)\.",
    least=1,
):
    """With torch's own encoder layers, one step replaced by each option."""
    names = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj.": "attn.proj."}
    names |= {
        "linear1.": "mlp.fc1.",
        "linear2.": "mlp.fc2.",
        "norm1.": "norm1.",
        "norm2.": "norm2.",
    }
    found = [int(match[1]) for k in state if (match := re.match(number, k))]
    depth = max(found, default=least - 1) + 1
    ends = [f"{end}{kind}" for end in names.values() for kind in ("weight", "bias")]
    expected = {f"blocks.{i}.{end}" for i in range(depth) for end in ends}
    for layer in ("patch_embed.proj", "norm", "head"):
        expected |= {f"{layer}.weight", f"{layer}.bias"}
    expected |= {"cls_token", "pos_embed"}
    wrong = sorted(expected - state.keys())
    wrong += sorted(state.keys() - expected) if strict else []
    if wrong:
        raise error("the file does not fit" if quiet else f"{len(wrong)} names: {wrong}")
    x = F.conv2d(
        images,
        state["patch_embed.proj.weight"],
        state["patch_embed.proj.bias"],
        stride=state["patch_embed.proj.weight"].shape[-2:],
    )
    x = x.flatten(2).mT + state["pos_embed"][:, 1:]
    first = state["cls_token"] + state["pos_embed"][:, :1]
    x = torch.cat([first.repeat(len(x), 1, 1), x], 1)
    for i in range(depth):
        hidden, dim = state["blocks.0.mlp.fc1.weight"].shape
        layer = nn.TransformerEncoderLayer(dim, heads, hidden, 0.0, F.gelu, 1e-6, True, pre)
        layer.load_state_dict(
            {
                f"{old}{kind}": state[f"blocks.{i}.{new}{kind}"]
                for old, new in names.items()
                for kind in ("weight", "bias")
            }
        )
        x = layer(x).detach()
    x = F.layer_norm(x, x.shape[-1:], state["norm.weight"], state["norm.bias"], 1e-6)
    return F.linear(x[:, 0], state["head.weight"], state["head.bias"])


CORRECT = {
    "layer_norm": by_torch,
    "block": after_both,
    "ordered_block": in_place_of_branches,
    "drop_path": by_picture,
    "logit_shares": norm_less_one,
    "logits_from_file": by_encoder_layers,
}

WRONG = {
    "layer_norm": [
        ("RuntimeError", without_keepdim),
    ],
    "drop_path": [
        ("That is dropout", partial(faulty_drop, shape=(2, 3))),
        ("That is dropout", partial(faulty_drop, shape=(2, 1))),
        ("it is that of dropping", share_kept),
        ("not scaled", partial(faulty_drop, scale=lambda rate: 1)),
        ("multiplied by 0.75", partial(faulty_drop, scale=lambda rate: 1 - rate)),
        ("nothing was dropped", lambda branch, rate, training: branch.clone()),
        (
            "its own draw",
            lambda b, rate, t: b * (1 - float(t and rate > 0)),
        ),
        ("fraction of 0.4", lambda b, rate, t: by_picture(by_picture(b, rate, t), rate, t)),
    ],
    "logits_from_file": [
        ("has head.scale, of no use, is accepted", partial(by_encoder_layers, strict=False)),
        ("lacks blocks.0.norm1.bias is accepted", partial(by_encoder_layers, least=0)),
        ("should be a ValueError", partial(by_encoder_layers, error=KeyError)),
        ("contain that name: got 'the file", partial(by_encoder_layers, quiet=True)),
        ("invalid literal for int", partial(by_encoder_layers, number=r"blocks\.(\w+)\.")),
    ],
}

TWO_ORDERS = "there are two orders, and 'res-post' comes after 'parallel' in the alphabet"
NAMED = "the message still contains every name that is wrong"
SQUARE = "patches are square"

DRAW = "kept = torch.rand(len(branch), 1, 1) {} rate"
VARIANCE = "variance = centred.sum(0).square().mean({}, keepdim=True)"
RAISE = "raise ValueError(f{})"
JOINED = "\"missing, or of no use: {', '.join(sorted(wrong))}\""
UNSORTED = "\"missing, or of no use: {', '.join(wrong)}\""
AS_LIST = "'missing, or of no use: {sorted(wrong)}'"
UNKNOWN_NAMES = "wrong = state.keys() ^ (expected {} {{'cls_token', 'pos_embed'}})"
LARGEST = "blocks = [f'blocks.{{i}}' for i in range(max(numbers, default={}) + 1)]"
STRIDE = "x = F.conv2d(images, kernel, bias, stride=kernel.shape[{}])"
FIRST = "x = torch.cat([state['cls_token'].expand(len(x), {}, -1), x], dim=1)"

EQUIVALENT = {
    "layer_norm": {
        "variance = (x - mean).square().mean(-1, keepdim=True) -> "
        "variance = (mean - x).square().mean(-1, keepdim=True)": "a square has no sign",
    },
    "ordered_block": {
        "if order == 'parallel': -> if order is 'parallel':": "Python keeps one copy of the word",
        "if order == 'parallel': -> if order <= 'parallel':": TWO_ORDERS,
    },
    "drop_path": {
        f"{DRAW.format('>=')} -> {DRAW.format('>')}": "a draw is never equal to the rate",
    },
    "logit_shares": {
        f"{VARIANCE.format(-1)} -> {VARIANCE.format(1)}": "with two axes, axis 1 is axis -1",
    },
    "logits_from_file": {
        f"{RAISE.format(JOINED)} -> {RAISE.format(UNSORTED)}": NAMED,
        f"{RAISE.format(JOINED)} -> {RAISE.format(AS_LIST)}": NAMED,
        f"{LARGEST.format(0)} -> {LARGEST.format(1)}": (
            "a file without blocks lacks all names of any number of them"
        ),
        f"{UNKNOWN_NAMES.format('|')} -> {UNKNOWN_NAMES.format('^')}": "the two sets have nothing in common",
        f"{STRIDE.format(-1)} -> {STRIDE.format(-2)}": SQUARE,
        f"{FIRST.format(-1)} -> {FIRST.format(1)}": "there is one class token",
    },
}
