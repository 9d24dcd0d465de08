"""Chapter 4: the parts of an encoder block, and a whole vision transformer from a file."""

import math
import re
from collections.abc import Callable, Iterator
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course.check.attempt import Attempt, Draw, NotYet, close, normal_draws
from course.check.chapter_02 import attend
from course.check.exercise import exercise
from course.mine import fill, plain_name


def normed(x: Tensor, axes: int | tuple[int, ...] = -1, eps: float = 0.0, fewer: int = 0) -> Tensor:
    """x without its mean and scale over some axes; ``fewer=1`` divides as the unbiased variance."""
    variance = x.var(axes, correction=fewer, keepdim=True)
    return (x - x.mean(axes, keepdim=True)) / (variance + eps).sqrt()


@exercise("batch, tokens, dim", seed=0)
def layer_norm(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], weight [dim], bias [dim], eps -> as x."""
    x = 2 * normal(2, 3, 5) + 1
    centred = x - x.mean(-1, keepdim=True)
    deviation = centred.square().mean(-1, keepdim=True).sqrt()
    ones, zeros = torch.ones(5), torch.zeros(5)
    outcomes = {
        normed(x): "With weight = 1, bias = 0 and eps = 0 every token should have mean 0 and "
        "variance 1 over its features.",
        normed(x, fewer=1): "The variance is divided by dim - 1. Layer norm has the biased "
        "variance, divided by dim: in Tensor.var, correction=0.",
        normed(x, 1): "The mean and variance are those of a feature over the tokens. Each token "
        "should be normed over its features, the last axis.",
        normed(x, 0): "The mean and variance are those of a feature over the batch.",
        normed(x, (0, 1)): "The mean and variance are those of a feature over batch and tokens. "
        "That is batch norm.",
        normed(x, (1, 2)): "Mean and variance are those of a whole image. Each token has its own.",
        x / deviation: "The mean is subtracted only for the variance.",
        centred: "The mean is subtracted, but nothing is divided by the standard deviation.",
        centred / (deviation * 5**0.5): "The sum of squares is not divided by dim.",
        centred / deviation**2: "You divide by the variance, not by its root.",
    }
    told = {
        "must match the size": "A mean or variance has lost the axis that it was taken over: "
        "keepdim=True keeps it, so that the mean can be subtracted from x."
    }
    attempt.expect_close(attempt(x, ones, zeros, 0.0, explain=told), outcomes)
    weight, bias = normal(5), normal(5)
    scaled = normed(x) * weight
    outcomes = {
        scaled + bias: "Multiply by the weight and add the bias last, one number for each feature.",
        normed(x) + bias: "The weight is not used.",
        scaled: "The bias is not used.",
        scaled + bias * weight: "The bias is multiplied by the weight too. It is added last.",
    }
    attempt.expect_close(attempt(x, weight, bias, 0.0), outcomes)
    outcomes = {
        normed(x, eps=0.5): "With eps = 0.5 the result is wrong. eps is added to the variance, "
        "inside the root.",
        normed(x): "eps is not used. It is added to the variance, inside the root.",
        centred / (deviation + 0.5): "eps is added to the standard deviation. It belongs inside "
        "the root, beside the variance.",
        normed(x, eps=0.25): "eps is squared. It is added to the variance as it is.",
    }
    attempt.expect_close(attempt(x, ones, zeros, 0.5), outcomes)


# norm1, attention, norm2, mlp: simple functions of [.., tokens, dim] that all differ
PARTS = (
    lambda x: 2 * normed(x, eps=1e-6),
    lambda x: torch.tanh(x.flip(-2)),  # reads another token
    lambda x: 3 * normed(x, eps=1e-6),
    lambda x: x.square() / 2,
)


@exercise("batch, tokens, dim", seed=1)
def block(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim] and four functions of such tokens -> as x."""
    x = 2 * normal(2, 3, 5) + 1
    norm1, attention, norm2, mlp = PARTS

    # One branch at a time, then both.
    after = x + attention(norm1(x))
    outcomes = {
        after: "With an MLP that gives zeros the result should be x + attention(norm1(x)).",
        x + attention(x): "Attention reads the stream without a norm.",
        attention(norm1(x)): "What attention computes is not added to the stream, which is lost.",
        x: "What attention adds is lost: the MLP reads and adds to the stream after attention.",
        torch.zeros_like(x): "What the MLP computes is not added to the stream.",
        norm1(x) + attention(norm1(x)): "The normed tokens are added. The stream itself should be.",
        norm2(norm1(x) + attention(norm1(x))): "The stream itself is normed, not a copy of it.",
        x + attention(norm2(x)): "Attention has norm2. Its norm is norm1.",
        norm2(norm1(x + attention(x))): "The norms come after the additions. That is post-norm; "
        "here each branch reads a normed copy.",
        norm2(after): "The result is normed. The stream itself is not normed in a block.",
        x + norm1(attention(x)): "What attention computes is normed before it is added. Its norm "
        "belongs before it.",
    }
    attempt.expect_close(attempt(x, norm1, attention, norm2, torch.zeros_like), outcomes)
    outcomes = {
        x + mlp(norm2(x)): "With attention giving zeros the result should be x + mlp(norm2(x)).",
        x + mlp(x): "The MLP reads the stream without a norm.",
        x: "Where attention gives zeros, the MLP adds nothing. It should read the stream after "
        "attention and add to it.",
        x + mlp(norm1(x)): "The MLP reads norm1. It has a norm of its own, norm2.",
        x + norm2(mlp(x)): "What the MLP computes is normed before it is added.",
    }
    attempt.expect_close(attempt(x, norm1, torch.zeros_like, norm2, mlp), outcomes)
    outcomes = {
        after + mlp(norm2(after)): "With both branches the result should be u + mlp(norm2(u)), "
        "where u is the stream after attention.",
        after + mlp(norm2(x)): "The MLP reads the stream as it was before attention.",
        x + mlp(norm2(x)) + attention(norm1(x + mlp(norm2(x)))): "The MLP comes before attention.",
    }
    attempt.expect_close(attempt(x, norm1, attention, norm2, mlp), outcomes)


@exercise("batch, tokens, dim", seed=1)
def ordered_block(attempt: Attempt, normal: Draw) -> None:
    """x [batch, tokens, dim], four functions of such tokens, an order -> as x."""
    x = 2 * normal(2, 3, 5) + 1
    norm1, attention, norm2, mlp = PARTS
    silent = torch.zeros_like
    read = norm1(x)
    after = x + attention(read)
    # One branch at a time, then both.
    outcomes = {
        after: "parallel, with an MLP giving zeros: the result should be x + attention(norm1(x)).",
        attention(read): "parallel: the stream itself is not added.",
        x + attention(x): "parallel: attention reads the stream without a norm.",
        read + attention(read): "parallel: the normed stream is added, not the stream itself.",
        norm2(after): "parallel: the result is normed. Only norm1 is used, before the branches.",
    }
    attempt.expect_close(attempt(x, norm1, attention, norm2, silent, "parallel"), outcomes)
    outcomes = {
        x + mlp(read): "parallel, attention giving zeros: the result should be x + mlp(norm1(x)).",
        x + mlp(norm2(x)): "parallel: the MLP reads norm2. Like attention it should read norm1.",
        x + mlp(x): "parallel: the MLP reads the stream without a norm.",
    }
    attempt.expect_close(attempt(x, norm1, silent, norm2, mlp, "parallel"), outcomes)
    outcomes = {
        after + mlp(read): "parallel: with both branches the result should be x + "
        "attention(norm1(x)) + mlp(norm1(x)).",
        after + mlp(norm1(after)): "parallel: the MLP sees what attention has added. Side by side "
        "both read the same.",
        after + mlp(attention(read)): "parallel: the MLP reads the output of attention.",
    }
    attempt.expect_close(attempt(x, norm1, attention, norm2, mlp, "parallel"), outcomes)
    after = x + norm1(attention(x))
    outcomes = {
        after: "res-post, with an MLP giving zeros: the result should be x + norm1(attention(x)).",
        norm2(norm1(x + attention(x))): "res-post: the norm comes after the addition. That is "
        "post-norm; here the branch is normed first and then added.",
        x + attention(read): "res-post: the norm comes before attention. That is pre-norm.",
        norm1(attention(x)): "res-post: the stream itself is not added.",
        x + norm2(attention(x)): "res-post: attention has norm2 and the MLP norm1.",
        x + attention(x): "res-post: the result of attention is not normed.",
    }
    attempt.expect_close(attempt(x, norm1, attention, norm2, silent, "res-post"), outcomes)
    outcomes = {
        after + norm2(mlp(after)): "res-post: with both branches the result should be u + "
        "norm2(mlp(u)), where u is the stream after attention.",
        after + norm2(mlp(x)): "res-post: the MLP reads the stream as it was before attention.",
        after + mlp(after): "res-post: the MLP's result is not normed.",
        after + norm1(mlp(after)): "res-post: norm1 is used for the MLP too.",
        after + mlp(norm2(after)): "res-post: the MLP's norm comes before it.",
        norm2(after + mlp(after)): "res-post: the MLP's norm comes after the addition.",
    }
    attempt.expect_close(attempt(x, norm1, attention, norm2, mlp, "res-post"), outcomes)


@exercise("batch, tokens, dim", seed=2)
def drop_path(attempt: Attempt, normal: Draw) -> None:
    """branch [batch, tokens, dim], rate, training -> as branch."""
    batch, tokens, dim = 4000, 2, 3  # so many that the fraction dropped is close to the rate
    shape = dict(batch=batch, tokens=tokens, dim=dim)
    # No zeros before anything is dropped.
    branch = normal(batch, tokens, dim).abs() + 0.5
    outcomes = {
        branch: "When not training the branch should come back as it is.",
        0.75 * branch: "When not training the branch is scaled. The scale belongs to training.",
        0 * branch: "When not training the branch is lost.",
    }
    attempt.expect_close(attempt(branch, 0.25, False), outcomes)
    outcomes = {
        branch: "With rate = 0 the branch should come back as it is.",
        0 * branch: "With rate 0 all is lost: rate is the probability of dropping, not of keeping.",
    }
    message = (
        "With rate = 0, where nothing is to be dropped, the result contains NaN or infinity. You "
        "may take rate for the probability of keeping and divide by it: it is that of dropping, "
        "and what is kept is divided by 1 - rate."
    )
    attempt.expect_close(attempt(branch, 0.0, True, if_not_finite=message), outcomes)
    for rate in (0.25, 0.6):
        factors = attempt(branch, rate, True, shape=shape) / branch  # [batch, tokens, dim]
        dropped = factors == 0
        for said, alike in (("nothing was dropped", ~dropped), ("all was dropped", dropped)):
            message = f"With rate = {rate} {said} of {batch} images. Each needs its own draw."
            attempt.expect(not alike.all(), message)
        attempt.expect(
            torch.equal(dropped, dropped[:, :1, :1].expand_as(dropped)),
            "Some entries of an image are dropped and others kept. That is dropout: here the "
            "whole branch of an image goes or stays. Draw numbers of shape [batch, 1, 1].",
        )
        share = dropped[:, 0, 0].double().mean().item()
        message = f"With rate = {rate} a fraction of {share:.2f} of the images was dropped."
        attempt.expect(abs(share - rate) < 0.05, message)
        kept = factors[~dropped]
        said = "What is kept is not scaled, so the mean over many draws is smaller than the branch."
        attempt.expect(not close(kept, torch.ones_like(kept)), said)
        attempt.expect(
            close(kept, torch.full_like(kept, 1 / (1 - rate))),
            f"What is kept is multiplied by {kept.mean():.3g}. For the mean over many draws to be "
            f"the branch, with rate = {rate}, it should be {1 / (1 - rate):.3g}.",
        )


@exercise("parts, batch, classes", seed=3)
def logit_shares(attempt: Attempt, normal: Draw) -> None:
    """parts [parts, batch, dim], gamma [dim], weight [classes, dim], eps -> shares."""
    count, batch, dim, classes = 4, 2, 5, 3
    parts = normal(count, batch, dim) * torch.tensor([3, 1, 0.5, 2])[:, None, None] + 1
    gamma, weight = normal(dim), normal(classes, dim)
    ones = torch.ones(dim)

    def shares(scale: Tensor, gamma: Tensor = gamma, of: Tensor = parts) -> Tensor:
        return torch.einsum("pbd,d,cd->pbc", of / scale, gamma, weight)

    centred = parts - parts.mean(-1, keepdim=True)
    total = parts.sum(0)
    scale = total.var(-1, keepdim=True, correction=0).sqrt()  # [batch, 1]
    own = parts.var(-1, keepdim=True, correction=0).sqrt()  # [parts, batch, 1]
    outcomes = {
        shares(own[:1], ones, centred[:1]): "With a single part and gamma = 1 its share should be "
        "the logits of the normed part.",
        shares(own[:1], ones, parts[:1]): "The mean is not subtracted.",
        shares(parts[:1].var(-1, keepdim=True).sqrt(), ones, centred[:1]): "The variance should be "
        "the biased one, divided by dim.",
    }
    attempt.expect_close(attempt(parts[:1], ones, weight, 0.0), outcomes)
    outcomes = {
        shares(scale, ones, centred): "With gamma = 1 a share is wrong: (part - its mean) / sigma, "
        "times the weights, with the one sigma of the whole stream.",
        shares(own, ones, centred): "Each part is divided by its own standard deviation. The norm "
        "divides the sum of all parts by one number, that of the sum.",
        shares(scale, ones, parts - total.mean(-1, keepdim=True)): "The mean of the whole stream "
        "is subtracted from every part. Each part should lose its own mean, so that the means add "
        "up to that of the sum.",
        shares(centred.square().mean((0, 2))[:, None].sqrt(), ones, centred): "The divisor is that "
        "of all parts put together. It should be the standard deviation of their sum, over its "
        "features.",
    }
    attempt.expect_close(attempt(parts, ones, weight, 0.0), outcomes)
    early = parts * gamma
    before = early - early.mean(-1, keepdim=True)
    early_scale = early.sum(0).var(-1, keepdim=True, correction=0).sqrt()
    outcomes = {
        shares(scale, gamma, centred): "gamma should multiply each feature after the norm, before "
        "the weights.",
        shares(scale, ones, centred): "gamma is not used.",
        shares(early_scale, ones, before): "gamma multiplies the parts before the norm.",
    }
    attempt.expect_close(attempt(parts, gamma, weight, 0.0), outcomes)
    outcomes = {
        shares((scale.square() + 2).sqrt(), gamma, centred): "With eps = 2 the shares are wrong. "
        "eps is added to the variance, inside the root.",
        shares(scale, gamma, centred): "eps is not used.",
        shares(scale + 2, gamma, centred): "eps is added to the standard deviation. It belongs "
        "inside the root.",
    }
    attempt.expect_close(attempt(parts, gamma, weight, 2.0), outcomes)


BATCH, SIDE, PATCH, DIM, HEADS, HIDDEN, CLASSES = 5, 8, 2, 24, 4, 20, 7
EPS = "The eps of the norms is 1e-5, torch's. It should be 1e-6."
State = dict[str, Tensor]


def file_of(depth: int, seed: int, hidden: int = HIDDEN) -> State:
    """A random file: every name of the exercise's table."""
    normal = normal_draws(seed)
    state = {"cls_token": normal(1, 1, DIM), "pos_embed": normal(1, 1 + (SIDE // PATCH) ** 2, DIM)}
    shapes = {"patch_embed.proj": (DIM, 3, PATCH, PATCH), "norm": (DIM,), "head": (CLASSES, DIM)}
    for i in range(depth):
        shapes |= {
            f"blocks.{i}.norm1": (DIM,),
            f"blocks.{i}.attn.qkv": (3 * DIM, DIM),
            f"blocks.{i}.attn.proj": (DIM, DIM),
            f"blocks.{i}.norm2": (DIM,),
            f"blocks.{i}.mlp.fc1": (hidden, DIM),
            f"blocks.{i}.mlp.fc2": (DIM, hidden),
        }
    for name, shape in shapes.items():
        weight = normal(*shape)
        state[f"{name}.weight"] = weight / weight[0].numel() ** 0.5 + (len(shape) == 1)
        state[f"{name}.bias"] = normal(shape[0]) / 2
    return state


def changed(state: State, names: str, change: Callable[[Tensor], Tensor]) -> State:
    """A copy in which the tensors are changed that have such names, a regular expression."""
    return {name: change(t) if re.search(names, name) else t for name, t in state.items()}


def forward(
    images: Tensor,
    state: State,
    *,
    eps: float = 1e-6,
    skip: str = "",
    norms: tuple[int, int] = (1, 2),
    width: int = DIM // HEADS,
    divisor: float = math.sqrt(DIM // HEADS),
    over: int = -1,
    gelu: str = "none",
    residual: bool = True,
    post: bool = False,
    read: str = "class",
    blocks: int | None = None,
) -> Tensor:
    """The logits, with what goes wrong most as arguments; ``skip`` names a norm left out."""

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(x: Tensor, name: str, here: bool = True) -> Tensor:
        if not here or (skip and name.endswith(skip)):
            return x
        return normed(x, eps=eps) * state[f"{name}.weight"] + state[f"{name}.bias"]

    pixels = F.unfold(images, PATCH, stride=PATCH).mT  # [batch, patches, 3 * patch * patch]
    x = pixels @ state["patch_embed.proj.weight"].flatten(1).T + state["patch_embed.proj.bias"]
    x = torch.cat([state["cls_token"].expand(len(x), 1, DIM), x], 1) + state["pos_embed"]
    depth = len({name.split(".")[1] for name in state if name.startswith("blocks.")})
    for i in range(depth if blocks is None else blocks):
        norm1, norm2 = (f"blocks.{i}.norm{number}" for number in norms)
        qkv = linear(norm(x, norm1, not post), f"blocks.{i}.attn.qkv").split(DIM, -1)
        heads = zip(*(t.split(width, -1) for t in qkv), strict=True)
        attended = torch.cat([attend(q, k, v, divisor, over) for q, k, v in heads], -1)
        x = residual * x + linear(attended, f"blocks.{i}.attn.proj")
        x = norm(x, norm1, post)
        hidden = linear(norm(x, norm2, not post), f"blocks.{i}.mlp.fc1")
        active = F.relu(hidden) if gelu == "relu" else F.gelu(hidden, approximate=gelu)
        x = norm(residual * x + linear(active, f"blocks.{i}.mlp.fc2"), norm2, post)
    x = norm(x, "norm")
    pooled = {"class": x[:, 0], "mean": x.mean(1), "last": x[:, -1]}[read]
    return linear(pooled, "head")


# What is said of each, and what it changes in ``forward``, or which tensors of the file and how.
Mistakes = dict[str, dict | tuple[str, Callable[[Tensor], Tensor]]]
Stage = tuple[State, str, Mistakes]  # with what is said where no mistake fits


def stages(state: State) -> Iterator[Stage]:
    """A file of one block, of which more and more takes part, and what goes wrong there."""
    otherwise = (
        "With branches that add nothing, the logits should be those of the class token plus its "
        "position, normed and read by the head."
    )
    mistakes: Mistakes = {
        "The last norm is missing.": dict(skip="norm"),
        "The head reads the mean of all tokens. It should read the class token.": dict(read="mean"),
        "The head reads the last token. The class token is the first.": dict(read="last"),
        "The class token's position is not added.": ("pos_embed", torch.zeros_like),
        "The class token has the last position. It stands in front of the patches, and the first "
        "position is its own.": ("pos_embed", lambda t: t.roll(1, 1)),
        "The stream is lost: each branch should be added to it.": dict(residual=False),
        "The norms stand on the stream, after each addition. That is post-norm: here each branch "
        "reads a normed copy.": dict(post=True),
    }
    yield changed(state, "attn.proj|mlp.fc2", torch.zeros_like), otherwise, mistakes
    places = torch.arange((SIDE // PATCH) ** 2)
    downwards = 1 + places.view(SIDE // PATCH, -1).T.flatten()
    no_places = "pos_embed", lambda t: F.pad(t[:, :1], (0, 0, 0, len(places)))
    by_column = "pos_embed", lambda t: t[:, [0, *downwards.tolist()]]
    last = "patch_embed.proj.weight", lambda t: t.reshape(DIM, PATCH, PATCH, 3).movedim(3, 1)
    keys_first = "attn.qkv", lambda t: t.unflatten(0, (3, -1))[[1, 0, 2]].flatten(0, 1)
    as_is, wide = ("attn.proj.weight", torch.t), dict(divisor=math.sqrt(DIM))
    mistakes = {
        "All columns act as one head.": dict(width=DIM, **wide),
        "Scores should be divided by the root of a head's width, not of the token's.": wide,
        "The scores are not scaled.": dict(divisor=1),
        "The softmax is over the queries. It should be over the keys.": dict(over=-2),
        "Attention reads the stream without its norm.": dict(skip="norm1"),
        "Attention reads norm2. Its norm is norm1.": dict(norms=(2, 2)),
        "The patches have no positions.": no_places,
        "The patches are counted downwards. Reading order goes along a row first.": by_column,
        "In a patch the channel comes last. All numbers of its first channel should come first, "
        "as in a convolution's weight.": last,
        "Queries and keys are exchanged: the first third of qkv gives the queries.": keys_first,
        "The matrix of attention's output projection is used as it is stored. Transpose it.": as_is,
        "The logits do not depend on the biases of attention. Add them; a module of your own may "
        "do without, by bias=False.": ("attn.*bias", torch.zeros_like),
        EPS: dict(eps=1e-5),  # little, but already more than the tolerance
    }
    otherwise = "With an MLP that adds nothing the logits are wrong: look at the patches and at "
    yield changed(state, "mlp.fc2", torch.zeros_like), f"{otherwise}attention.", mistakes
    mistakes = {
        "The GELU is the approximation by tanh. The exact one is x times the normal distribution "
        "function.": dict(gelu="tanh"),
        "The MLP has a ReLU. It should have a GELU.": dict(gelu="relu"),
        "The MLP reads the stream without its norm.": dict(skip="norm2"),
        "The MLP reads norm1. It has a norm of its own, norm2.": dict(norms=(1, 1)),
    }
    yield state, "With the MLP the logits are wrong.", mistakes

    # Tokens so small that eps counts: their variance is about 1e-6.
    small = changed(state, "cls_token|pos_embed|patch_embed", lambda t: 1e-3 * t)
    otherwise = "For faint tokens the logits are wrong. Is the eps of the norms 1e-6?"
    yield small, otherwise, {EPS: dict(eps=1e-5)}


def expect_logits(attempt: Attempt, logits: Tensor, images: Tensor, stage: Stage) -> None:
    state, otherwise, mistakes = stage
    right, wrong = forward(images, state), {}
    for said, how in mistakes.items():
        planted = dict(state=changed(state, *how)) if isinstance(how, tuple) else how
        wrong[forward(images, **{"state": state} | planted)] = said
    wrong[right.softmax(-1)] = "Return the logits, without a softmax."
    attempt.expect_close(logits, {right: otherwise} | wrong)


# Parts of a parameter's name: in timm's files, in the reader's ViT, in torchvision's.
NAMES = (
    ("patch_embed.proj.", "embedding.", "conv_proj."),
    ("cls_token", "class_token", "class_token"),
    ("pos_embed", "positions", "encoder.pos_embedding"),
    ("blocks.", "blocks.", "encoder.layers.encoder_layer_"),
    ("norm1.", "norm1.", "ln_1."),
    ("attn.qkv.", "qkv.", "self_attention.in_proj_"),
    ("attn.proj.", "out.", "self_attention.out_proj."),
    ("norm2.", "norm2.", "ln_2."),
    ("mlp.fc1.", "up.", "mlp.0."),
    ("mlp.fc2.", "down.", "mlp.3."),
    ("norm.", "norm.", "encoder.ln."),
    ("head.", "head.", "heads.head."),
)


def renamed(state: State, old: int, new: int) -> State:
    """The same numbers under the names of another column."""
    return {
        reduce(lambda name, row: name.replace(row[old], row[new]), NAMES, name): tensor
        for name, tensor in state.items()
    }


# Biases that a reader's attention may lack: how their names end in each column.
OPTIONAL = ("qkv.bias", "in_proj_bias"), ("out.bias", "attn.proj.bias", "out_proj.bias")


def filled(make: Callable, sizes: tuple[int, ...], state: State, images: Tensor | None) -> object:
    """The logits of a reader's model filled with numbers; without images, its names."""
    model = make(*sizes)
    if model is None or isinstance(model, Tensor):
        return model
    if not isinstance(model, nn.Module):
        raise NotYet(f"It makes a {type(model).__name__}: begin with class ViT(nn.Module).")
    found = {plain_name(name): parameter for name, parameter in model.named_parameters()}
    ends = tuple(end for end, *_ in OPTIONAL)
    lost = [name for name in state if name not in found and not name.endswith(ends)]
    own = "Each block has parameters of its own, all with the names of the table."
    if lost:
        raise NotYet(f"There is no parameter {lost[0]}. {own}")
    for name, parameter in found.items():
        if name not in state:
            raise NotYet(f"The table has no parameter {name}. {own}")
        given, right = list(parameter.shape), list(state[name].shape)
        if parameter.numel() != state[name].numel():
            sizes_of = "Take all sizes from the arguments."
            raise NotYet(f"{name} has shape {given}, expected {right}. {sizes_of}")
    return tuple(found) if images is None else fill(model.eval(), state).forward(images)


@exercise("batch, classes")
def ViT(attempt: Attempt) -> None:
    """(size, patch, channels, dim, depth, heads, classes) -> a module, equal to torchvision's."""
    attempt.applied = filled
    images = normal_draws(seed=10)(BATCH, 3, SIDE, SIDE)
    one, three = ((SIDE, PATCH, 3, DIM, depth, HEADS, CLASSES) for depth in (1, 3))
    state = file_of(depth=1, seed=11, hidden=4 * DIM)
    names = attempt.plain(one, renamed(state, 0, 1), None, kind=tuple)
    absent = [ends for ends in OPTIONAL if not any(name.endswith(ends[0]) for name in names)]

    def unbiased(state: State) -> State:
        return {name: 0 * t if name.endswith(sum(absent, ())) else t for name, t in state.items()}

    for stage in stages(unbiased(state)):
        logits = attempt(one, renamed(stage[0], 0, 1), images, dtype=images.dtype)
        expect_logits(attempt, logits, images, stage)
    for sizes in (three, (3, 1, 1, 10, 2, 5, 4)):  # the second catches numbers typed in
        theirs, normal = torchvisions(*sizes), normal_draws(seed=13)
        drawn = {name: normal(*t.shape) / 3 for name, t in theirs.state_dict().items()}
        theirs.load_state_dict(unbiased(drawn), assign=True)
        seen = images[:, : sizes[2], : sizes[0], : sizes[0]]
        right = theirs(seen).detach()
        said = (
            f"With the sizes {sizes} the logits are not torchvision's. Does each block run once, "
            "in order? Are numbers typed in?"
        )
        logits = attempt(sizes, renamed(unbiased(drawn), 2, 1), seen, dtype=images.dtype)
        attempt.expect_close(logits, {right: said})


def torchvisions(*sizes: int) -> nn.Module:
    """torchvision's ViT, for images of any number of channels."""
    from torchvision.models import VisionTransformer  # slow to import

    size, patch, channels, dim, depth, heads, classes = sizes
    with torch.device("meta"):  # no numbers yet
        model = VisionTransformer(size, patch, depth, heads, dim, 4 * dim, num_classes=classes)
        model.conv_proj = nn.Conv2d(channels, dim, patch, patch)
    return model.eval()


@exercise("batch, classes", seed=10)
def logits_from_file(attempt: Attempt, normal: Draw) -> None:
    """images [batch, 3, side, side], state (timm's names), heads -> [batch, classes]."""
    images = normal(BATCH, 3, SIDE, SIDE)
    for stage in stages(file_of(depth=1, seed=11)):
        expect_logits(attempt, attempt(images, stage[0], HEADS), images, stage)
    shorter: Mistakes = {
        f"Of 12 blocks only {n} run. Their number is one more than the largest number in a name, "
        "which may have two digits.": dict(blocks=n)
        for n in (1, 2, 9, 10, 11)
    }
    state = file_of(depth=12, seed=12)
    otherwise = "With 12 blocks the logits are wrong. Does each run once, in order, with its own "
    logits = attempt(images, state, HEADS)
    expect_logits(attempt, logits, images, (state, f"{otherwise}weights?", shorter))
    refuses(attempt, images)


def refuses(attempt: Attempt, images: Tensor) -> None:
    """A ValueError must name each tensor that is missing, and each that is of no use."""
    state = file_of(depth=3, seed=13)
    files = [(name, {k: t for k, t in state.items() if k != name}) for name in state]
    extra = ("head.scale", "blocks.1.attn.qkv.scale", "blocks.norm.weight", "dist_token")
    files += [(name, state | {name: torch.ones(1)}) for name in extra]
    # A whole block is missing; all blocks are missing.
    for start, name in (("blocks.1.", "blocks.1.norm1.bias"), ("blocks.", "blocks.0.norm1.bias")):
        files.append((name, {k: t for k, t in state.items() if not k.startswith(start)}))
    for name, broken in files:
        what = f"has {name}, of no use," if name in extra else f"lacks {name}"
        try:
            attempt(images, broken, HEADS, shape=dict(batch=BATCH, classes=CLASSES))
        except NotYet as reason:
            error = reason.__cause__
            if error is None:
                raise
            attempt.expect(
                type(error) is ValueError,
                f"For a file that {what} a {type(error).__name__} was raised; it should be a "
                "ValueError that contains the name.",
            )
            said = f"For a file that {what} the ValueError should contain that name: got '{error}'."
            attempt.expect(name in str(error), said)
        else:
            raise NotYet(f"A file that {what} is accepted. It should be refused.")
