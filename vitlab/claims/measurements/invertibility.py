"""What a model's parts keep of their input, and how much of it can be recovered."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float64
from torch import Tensor

from minivit.mixer import MixerBlock
from minivit.vit import Block
from vitlab.calls import activation, sublayer
from vitlab.claims.measurements import parts
from vitlab.claims.measurements.mixing import exact, on_tokens
from vitlab.claims.measuring import Measured, Subject, measures, require
from vitlab.instruments import spectrum
from vitlab.inversion import invert_block, sign_change

NUMBERS = 4096  # of an input, at most, of which the whole derivative is computed
LIMIT = f"derivatives are limited to {NUMBERS:,}"
MARGIN = 1e3  # of a sign that no rounding could turn
FEW = 6  # images whose blocks are inverted
SEVERAL = 4  # images at which a derivative's rank is computed
NEWTON = 10  # steps, for a branch that stretches what it reads
RECOVERED = 1e-6  # the relative error of tokens that are recovered


@measures("R43")
def constants_kept(subject: Subject) -> Measured:
    """Relative error of the outputs' difference being the inputs', for tokens that differ by a
    constant each, which no LayerNorm can tell apart; the largest of all blocks."""
    model, images = exact(subject, 3)
    parts.require_attention(model, images)
    errors = []
    for name in parts.row_of_layers(model, images):
        block, x = sublayer(model, name, images)
        require(x.ndim == 3, f"{name!r} reads {list(x.shape)}, not tokens")
        draws = torch.Generator().manual_seed(0)
        shift = torch.randn(*x.shape[:2], 1, dtype=x.dtype, generator=draws).to(x.device)
        with torch.no_grad():
            change = block(x + shift) - block(x)
        errors.append(((change - shift).abs().max() / shift.abs().max()).item())
    return Measured(max(errors), curves={"error": torch.tensor(errors)})


@measures("R50", slow=True, untrained=True)
def orientation_reversed(subject: Subject) -> Measured:
    """Fraction of the MLPs whose derivative, of a token, has a positive determinant at some tokens
    and a negative one at others, so that some outputs have several inputs."""
    model, images = exact(subject, 4)
    reversing = []
    for name in parts.mlps_of(model, images):
        mlp, x = sublayer(model, name, images)
        same = x.ndim == 3 and mlp(x).shape == x.shape
        require(same, f"{name!r} does not map tokens to tokens of the same width")
        tokens = x.flatten(0, 1)
        tokens = tokens[:: -(-len(tokens) // (64 if x.shape[2] <= 128 else 16))]

        def of_tokens(t: Tensor, mlp: Callable[[Tensor], Tensor] = mlp) -> Tensor:
            return mlp(t[:, None])[:, 0]

        change = sign_change(of_tokens, tokens, enough=MARGIN)
        reversing.append(change is not None and change.margin > MARGIN)
    return Measured(sum(reversing) / len(reversing))


@measures("R63", slow=True, untrained=True)
def rank_of_attention(subject: Subject) -> Measured:
    """Fraction of attention layers and images at which the derivative falls short of full rank."""
    lacking = []
    for image in subject.images[:SEVERAL].split(1):
        for name, attention, x in on_tokens(replace(subject, images=image), parts.attention_of):
            require(x.numel() <= NUMBERS, f"{name!r} reads {x.numel():,} numbers: {LIMIT}")
            lacking.append(int(spectrum(attention, x, dense=True).rank()) < x.numel())
    each = torch.tensor(lacking).double().view(min(SEVERAL, len(subject.images)), -1).mean(1)
    return Measured(each.mean().item(), each)


def ranks(subject: Subject, first: bool = False) -> Float64[Tensor, "layers"]:
    """The ranks of derivatives by an image: of what the first block reads, and what each gives."""
    model, image = exact(subject)
    require(image.numel() <= NUMBERS, f"an image has {image.numel():,} numbers: {LIMIT}")
    names = parts.row_of_layers(model, image)
    functions = [parts.read_by(model, names[0])] if first else []
    functions += [activation(model, name) for name in names]
    spectra = [spectrum(function, image, dense=True) for function in functions]
    return torch.tensor([float(values.rank(1e-12)) for values in spectra]).double()


@measures("C16", slow=True, untrained=True)
def lost_by_blocks(subject: Subject) -> Measured:
    """Fall of the derivative's rank from what the first block reads to what the last one gives."""
    parts.require_attention(subject.model, subject.images)
    by_layer = ranks(subject, first=True)
    return Measured((by_layer[0] - by_layer[-1]).item(), curves={"rank": by_layer})


@measures("C17", slow=True, untrained=True)
def kept_by_network(subject: Subject) -> Measured:
    """Rank of the derivative of a network's last map, as a fraction of the image's numbers."""
    attends = parts.attends(subject.model, subject.images[:1])
    require(not attends, "is about convolutional networks: this model has attention")
    by_layer = ranks(subject)
    return Measured(by_layer[-1].item() / subject.images[0].numel(), curves={"rank": by_layer})


@measures("R24", slow=True, untrained=True)
def blocks_inverted(subject: Subject) -> Measured:
    """Fraction of blocks and images of which the input is recovered from the block's output."""
    ours = any(isinstance(part, Block | MixerBlock) for part in subject.model.modules())
    require(ours, "only blocks of minivit's own models can be inverted: convert it first")
    model, images = exact(subject, FEW)
    names = parts.row_of_layers(model, images)
    stream = parts.outputs(model, images, names, len(images))
    recovered = []
    for above, name in zip([parts.FIRST, *names], names, strict=False):
        with torch.no_grad():
            y = stream[name].to(images.device)
            x = invert_block(model.get_submodule(name), y, newton=NEWTON).x.cpu()
        error = (x - stream[above]).flatten(1).norm(dim=1) / stream[above].flatten(1).norm(dim=1)
        recovered.append(error < RECOVERED)
    table = torch.stack(recovered).double()  # [blocks, images]
    return Measured(table.mean().item(), table.mean(0), curves={"found again": table.mean(1)})
