"""Chapter 4: answers that learners might give."""

import re
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


def by_torch(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def faulty_norm(x, weight, bias, eps, axes=-1, correction=0, root=0.5, outside=False, centre=True):
    """Layer norm of tokens with one step replaced."""
    mean, variance = x.mean(axes, True), x.var(axes, keepdim=True, correction=correction)
    divisor = variance.sqrt() + eps if outside else (variance + eps) ** root
    return (x - mean * centre) / divisor * weight + bias


def without_keepdim(x, weight, bias, eps):
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * weight + bias


def after_both(x, norm1, attention, norm2, mlp):
    """Adds what both branches have written to the stream at the end."""
    heard = attention(norm1(x))
    return heard + mlp(norm2(x + heard)) + x


def post_norm(x, n1, a, n2, m):
    u = n1(x + a(x))
    return n2(u + m(u))


def pre_norm(x, n1, a, n2, m):
    u = x + a(n1(x))
    return u + m(n2(u))


def same(x):
    return x


def sandwich(x, n1, a, n2, m):
    """Each branch normed behind its work."""
    return pre_norm(x, same, lambda x: n1(a(x)), same, lambda x: n2(m(x)))


def mlp_on_its_own_stream(x, n1, a, n2, m):
    u = n2(x + a(n1(x)))
    return u + m(u)


def mlp_first(x, n1, a, n2, m):
    return pre_norm(x, n2, m, n1, a)


def in_place_of_branches(x, norm1, attention, norm2, mlp, order):
    y = norm1(x) if order == "parallel" else norm1(attention(x)) + x
    return x + mlp(y) + attention(y) if order == "parallel" else norm2(mlp(y)) + y


def orders(parallel=None, res_post=None):
    """A block with one of its two orders replaced."""

    def block(x, norm1, attention, norm2, mlp, order):
        replaced = {"parallel": parallel, "res-post": res_post}[order]
        return (replaced or partial(in_place_of_branches, order=order))(
            x, norm1, attention, norm2, mlp
        )

    return block


def by_picture(branch, rate, training):
    """Decides for one image after the other."""
    if not training or not rate:
        return branch.clone()
    factors = torch.empty(len(branch)).bernoulli_(1 - rate) / (1 - rate)
    return torch.einsum("bnd,b->bnd", branch, factors)


def faulty_drop(branch, rate, training, shape=(1, 1), keep=None, scale=None, always=False):
    if not training and not always:
        return branch
    kept = torch.rand(len(branch), *shape) >= (rate if keep is None else 1 - keep(rate))
    return branch * kept * (1 / (1 - rate) if scale is None else scale(rate))


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


def faulty_shares(parts, gamma, weight, eps, own=False, means="own", correction=0, outside=False):
    mean = {"own": parts, "total": parts.sum(0), "none": 0 * parts}[means].mean(-1, keepdim=True)
    variance = (parts if own else parts.sum(0)).var(-1, keepdim=True, correction=correction)
    divisor = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return (parts - mean) / divisor * gamma @ weight.T


def by_encoder_layers(
    images,
    state,
    heads,
    eps=1e-6,
    gelu="none",
    pre=True,
    read=lambda x: x[:, 0],
    strict=True,
    error=ValueError,
    quiet=False,
    digits=None,
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
    found = [int(match[1][:digits]) for k in state if (match := re.match(number, k))]
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
        layer = nn.TransformerEncoderLayer(
            dim, heads, hidden, 0.0, partial(F.gelu, approximate=gelu), eps, True, pre
        )
        layer.load_state_dict(
            {
                f"{old}{kind}": state[f"blocks.{i}.{new}{kind}"]
                for old, new in names.items()
                for kind in ("weight", "bias")
            }
        )
        x = layer(x).detach()
    x = F.layer_norm(x, x.shape[-1:], state["norm.weight"], state["norm.bias"], eps)
    return F.linear(read(x), state["head.weight"], state["head.bias"])


def with_state(change, images, state, heads):
    """The right answer for another file."""
    by_encoder_layers(images, state, heads)  # refuses what is to be refused
    return by_encoder_layers(images, {k: change(k, t) for k, t in state.items()}, heads)


def unscaled(name, tensor):
    """Queries times the root of a head's width, here 6, which undoes the division."""
    if ".qkv." not in name:
        return tensor
    factor = torch.ones(3, len(tensor) // 3)
    factor[0] = 6**0.5
    return factor.view(-1, *[1] * (tensor.ndim - 1)) * tensor


def placeless(name, tensor):
    return torch.cat([0 * tensor[:, :1], tensor[:, 1:]], 1) if name == "pos_embed" else tensor


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
        ("divided by dim - 1", partial(faulty_norm, correction=1)),
        ("of a feature over the tokens", partial(faulty_norm, axes=1)),
        ("of a feature over the batch", partial(faulty_norm, axes=0)),
        ("That is batch norm", partial(faulty_norm, axes=(0, 1))),
        ("those of a whole image", partial(faulty_norm, axes=(1, 2))),
        ("those of the whole batch", partial(faulty_norm, axes=(0, 1, 2))),
        ("only for the variance", partial(faulty_norm, centre=False)),
        ("nothing is divided", partial(faulty_norm, root=0)),
        ("not divided by dim.", lambda x, w, b, e: by_torch(x, w / 5**0.5, b, e)),
        ("not by its root", partial(faulty_norm, root=1)),
        ("added to the standard deviation", partial(faulty_norm, outside=True)),
        ("The weight is not used", lambda x, w, b, e: by_torch(x, 0 * w + 1, b, e)),
        ("The bias is not used", lambda x, w, b, e: by_torch(x, w, 0 * b, e)),
        ("bias is multiplied", lambda x, w, b, e: by_torch(x, w, w * b, e)),
        ("eps is not used", lambda x, w, b, e: by_torch(x, w, b, 0)),
        ("eps is squared", lambda x, w, b, e: by_torch(x, w, b, e * e)),
        ("RuntimeError", without_keepdim),
    ],
    "block": [
        ("That is post-norm", post_norm),
        ("Attention reads the stream without", lambda x, n1, a, n2, m: pre_norm(x, same, a, n2, m)),
        ("the stream is lost", lambda x, n1, a, n2, m: pre_norm(0 * x, lambda _: n1(x), a, n2, m)),
        ("The normed tokens are added", lambda x, n1, a, n2, m: pre_norm(n1(x), same, a, n2, m)),
        ("attention has norm2", lambda x, n1, a, n2, m: pre_norm(x, n2, a, n1, m)),
        ("The result is normed", lambda x, n1, a, n2, m: n2(pre_norm(x, n1, a, n2, m))),
        ("The result is normed", mlp_on_its_own_stream),
        ("attention computes is normed", sandwich),
        ("stream is added twice", lambda x, n1, a, n2, m: x + pre_norm(x, n1, a, n2, m)),
        ("What the MLP computes is not added", lambda x, n1, a, n2, m: m(n2(x + a(n1(x))))),
        ("What attention adds is lost", lambda x, n1, a, n2, m: x + m(n2(x + a(n1(x))))),
        ("MLP reads the stream without", lambda x, n1, a, n2, m: pre_norm(x, n1, a, same, m)),
        ("MLP reads norm1", lambda x, n1, a, n2, m: pre_norm(x, n1, a, n1, m)),
        (
            "MLP computes is normed",
            lambda x, n1, a, n2, m: pre_norm(x, n1, a, same, lambda x: n2(m(x))),
        ),
        ("the MLP adds nothing", lambda x, n1, a, n2, m: x + a(n1(x)) + m(n2(a(n1(x))))),
        ("the MLP adds nothing", lambda x, n1, a, n2, m: x + a(n1(x))),
        ("as it was before attention", lambda x, n1, a, n2, m: x + a(n1(x)) + m(n2(x))),
        ("MLP comes before attention", mlp_first),
    ],
    "ordered_block": [
        ("MLP reads norm2", orders(lambda x, n1, a, n2, m: x + a(n1(x)) + m(n2(x)))),
        ("MLP reads norm2", orders(pre_norm)),
        (
            "sees what attention has added",
            orders(lambda x, n1, a, n2, m: pre_norm(x, n1, a, n1, m)),
        ),
        ("the stream itself is not added", orders(lambda x, n1, a, n2, m: a(n1(x)) + m(n1(x)))),
        ("attention reads the stream without", orders(lambda x, n1, a, n2, m: x + a(x) + m(n1(x)))),
        ("MLP reads the stream without", orders(lambda x, n1, a, n2, m: x + a(n1(x)) + m(x))),
        (
            "stream is added twice",
            orders(lambda x, n1, a, n2, m: x + a(n1(x)) + x + m(n1(x))),
        ),
        ("That is post-norm", orders(res_post=post_norm)),
        ("That is pre-norm", orders(res_post=pre_norm)),
        ("attention has norm2", orders(res_post=lambda x, n1, a, n2, m: sandwich(x, n2, a, n1, m))),
        (
            "stream as it was before",
            orders(res_post=lambda x, n1, a, n2, m: x + n1(a(x)) + n2(m(x))),
        ),
        (
            "MLP's result is not normed",
            orders(res_post=lambda x, n1, a, n2, m: sandwich(x, n1, a, same, m)),
        ),
        (
            "norm1 is used for the MLP too",
            orders(res_post=lambda x, n1, a, n2, m: sandwich(x, n1, a, n1, m)),
        ),
    ],
    "drop_path": [
        ("That is dropout", partial(faulty_drop, shape=(2, 3))),
        ("That is dropout", partial(faulty_drop, shape=(2, 1))),
        ("not of keeping", partial(faulty_drop, keep=lambda rate: rate)),
        ("it is that of dropping", share_kept),
        ("not scaled", partial(faulty_drop, scale=lambda rate: 1)),
        ("multiplied by 0.75", partial(faulty_drop, scale=lambda rate: 1 - rate)),
        ("nothing was dropped", lambda branch, rate, training: branch.clone()),
        ("not training the branch should come back", partial(faulty_drop, always=True)),
        ("branch is scaled", lambda b, rate, t: by_picture(b, rate, t) * (1 if t else 1 - rate)),
        ("the branch is lost", lambda branch, rate, training: branch * training),
        (
            "its own draw",
            lambda b, rate, t: b * (1 - float(t and rate > 0)),
        ),
        ("fraction of 0.4", lambda b, rate, t: by_picture(by_picture(b, rate, t), rate, t)),
    ],
    "logit_shares": [
        ("divided by its own standard deviation", partial(faulty_shares, own=True)),
        ("mean of the whole stream", partial(faulty_shares, means="total")),
        ("mean is not subtracted", partial(faulty_shares, means="none")),
        ("biased one", partial(faulty_shares, correction=1)),
        ("eps is added to the standard deviation", partial(faulty_shares, outside=True)),
        ("eps is not used", lambda p, g, w, e: faulty_shares(p, g, w, 0)),
        ("gamma is not used", lambda p, g, w, e: faulty_shares(p, 0 * g + 1, w, e)),
        ("before the norm", lambda p, g, w, e: faulty_shares(p * g, 0 * g + 1, w, e)),
    ],
    "logits_from_file": [
        ("is 1e-5, torch's", partial(by_encoder_layers, eps=1e-5)),
        ("approximation by tanh", partial(by_encoder_layers, gelu="tanh")),
        ("mean of all tokens", partial(by_encoder_layers, read=lambda x: x.mean(1))),
        ("reads the last token", partial(by_encoder_layers, read=lambda x: x[:, -1])),
        ("act as one head", lambda images, state, heads: by_encoder_layers(images, state, 1)),
        ("scores are not scaled", partial(with_state, unscaled)),
        ("class token's position", partial(with_state, placeless)),
        ("class token plus its position", partial(by_encoder_layers, pre=False)),
        ("only 10 run", partial(by_encoder_layers, digits=1, strict=False)),
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
    "block": {},
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
