"""What a model's parts keep of their input, and how much of it can be recovered."""

import copy
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float64
from torch import Tensor

from minivit.mixer import MixerBlock
from minivit.vit import Block
from vitlab.calls import activation, sublayer
from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.mixing import exact, on_tokens
from vitlab.claims.probes.parts import (
    FIRST,
    attends,
    attention_of,
    both_kinds,
    outputs,
    read_by,
    row_of_layers,
)
from vitlab.claims.probes.subjects import before_training, figure_of
from vitlab.instruments import spectrum
from vitlab.inversion import invert_block, sign_change

NUMBERS = 2048  # of an input, at most, of which the whole derivative is computed
MARGIN = 1e3  # of a sign that no rounding could turn
FEW = 6  # images whose blocks are undone
NEWTON = 10  # steps, for a branch that stretches what it reads
FOUND = 1e-6  # the relative error of tokens that are found again


@probe("R43", "Do this model's blocks keep the constant that LayerNorm removes from a token?")
def carried(subject: Subject) -> Measured:
    """Relative error of the outputs' difference being the inputs', for tokens that differ by a
    constant each, which no LayerNorm can tell apart; the largest of all blocks."""
    model, images = copy.deepcopy(subject.model).double().eval(), subject.images[:3].double()
    attention_of(model, images)
    errors = []
    for name in row_of_layers(model, images):
        block, x = sublayer(model, name, images)
        if x.ndim != 3:
            raise CannotAsk(f"{name!r} reads {list(x.shape)}, not tokens")
        draws = torch.Generator().manual_seed(0)
        shift = torch.randn(*x.shape[:2], 1, dtype=x.dtype, generator=draws).to(x.device)
        with torch.no_grad():
            change = block(x + shift) - block(x)
        errors.append(((change - shift).abs().max() / shift.abs().max()).item())
    return Measured(max(errors), curves={"error": torch.tensor(errors)})


@probe(
    "R50",
    "What fraction of this model's MLPs reverse orientation at some tokens and not at others, so "
    "that some outputs have several inputs?",
    slow=True,
)
def turned_round(subject: Subject) -> Measured:
    """Derivative of a token with positive determinant at some tokens and negative at others."""
    model, images = copy.deepcopy(subject.model).double().eval(), subject.images[:4].double()
    _, names = both_kinds(model, images)
    turned = []
    for name in names:
        mlp, x = sublayer(model, name, images)
        if x.ndim != 3 or mlp(x).shape != x.shape:
            raise CannotAsk(f"{name!r} does not map tokens to tokens of the same width")
        tokens = x.flatten(0, 1)
        tokens = tokens[:: -(-len(tokens) // (64 if x.shape[2] <= 128 else 16))]

        def of_each(t: Tensor, mlp: Callable[[Tensor], Tensor] = mlp) -> Tensor:
            return mlp(t[:, None])[:, 0]

        change = sign_change(of_each, tokens, enough=MARGIN)
        turned.append(change is not None and change.margin > MARGIN)
    baselines = before_training(subject, figure_of(turned_round))
    return Measured(sum(turned) / len(turned), baselines=baselines)


@probe("R63", "By how much does the derivative of this model's attention fall short of full rank?")
def rank_of_attention(subject: Subject) -> Measured:
    """At the tokens of one image; the most of all attention layers."""
    model, image = exact(subject)
    lacking = []
    for name in attention_of(model, image):
        attention, x = on_tokens(model, name, image)
        if x.numel() > NUMBERS:
            raise CannotAsk(
                f"{name!r} reads {x.numel():,} numbers: derivatives are limited to {NUMBERS:,}"
            )
        lacking.append(x.numel() - int(spectrum(attention, x, dense=True).rank()))
    baselines = before_training(subject, figure_of(rank_of_attention))
    return Measured(max(lacking), baselines=baselines)


def ranks(subject: Subject) -> tuple[Float64[Tensor, "layers"], int]:
    """Rank of the derivative of each block's output by one image's numbers; how many these are."""
    model, image = exact(subject)
    if image.numel() > NUMBERS:
        raise CannotAsk(
            f"an image has {image.numel():,} numbers: derivatives are limited to {NUMBERS:,}"
        )
    found = [
        spectrum(activation(model, name), image, dense=True).rank(1e-12).item()
        for name in row_of_layers(model, image)
    ]
    return torch.tensor(found).double(), image.numel()


@probe(
    "C16",
    "How many dimensions of an image that this model's embedding keeps are lost in its blocks?",
    slow=True,
)
def lost_by_blocks(subject: Subject) -> Measured:
    """Fall of the derivative's rank from what the first block reads to what the last one gives."""
    attention_of(subject.model, subject.images)
    found, _ = ranks(subject)
    model, image = exact(subject)
    names = row_of_layers(model, image)
    kept = spectrum(read_by(model, names[0]), image, dense=True).rank(1e-12).item()
    curve = torch.cat([torch.tensor([kept]), found])
    return Measured(kept - found[-1].item(), curves={"rank": curve})


@probe(
    "C17",
    "What fraction of an image's dimensions reaches this convolutional network's last map?",
    slow=True,
)
def kept_by_network(subject: Subject) -> Measured:
    """Rank of the derivative, as a fraction of the image's numbers, of one image."""
    if attends(subject.model, subject.images[:1]):
        raise CannotAsk("is about convolutional networks: this model has attention")
    found, numbers = ranks(subject)
    baselines = before_training(subject, figure_of(kept_by_network))
    return Measured(found[-1].item() / numbers, baselines=baselines, curves={"rank": found})


def own_blocks(subject: Subject) -> None:
    """Refuses a model without a block of minivit's."""
    if not any(isinstance(part, Block | MixerBlock) for part in subject.model.modules()):
        raise CannotAsk("only blocks of minivit's own models can be inverted: convert it first")


@probe(
    "R24",
    "In what fraction of cases can the input tokens of a block of this model be recovered from "
    "its output?",
    slow=True,
    needs=(own_blocks,),
)
def undone(subject: Subject) -> Measured:
    """Pairs of block and image, each block alone, in float64, to a millionth."""
    model, images = copy.deepcopy(subject.model).double().eval(), subject.images[:FEW].double()
    names = row_of_layers(model, images)
    seen = outputs(model, images, names, len(images), first=names[0])
    pairs = zip([FIRST, *names], names, strict=False)
    hits = []
    for above, name in pairs:
        undo = partial(invert_block, model.get_submodule(name), newton=NEWTON)
        with torch.no_grad():
            found = undo(seen[name].to(images.device)).x.cpu()
        error = (found - seen[above]).flatten(1).norm(dim=1) / seen[above].flatten(1).norm(dim=1)
        hits.append(error < FOUND)
    table = torch.stack(hits).double()  # [blocks, images]
    return Measured(table.mean().item(), table.mean(0), curves={"found again": table.mean(1)})
