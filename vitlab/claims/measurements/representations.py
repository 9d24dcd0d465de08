"""How alike the layers of a model are, and those of two, and how its tokens vary with depth."""

from functools import partial

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from vitlab.claims.measurements.parts import compared, outputs, row_of_layers, sublayers
from vitlab.claims.measuring import Measured, Subject, measures, require, with_mean
from vitlab.instruments import CKA, branch_variance, localisation
from vitlab.instruments.layout import outside
from vitlab.instruments.variance import PLACES, variance_over_positions

MANY = 1000  # images without which too few tokens are told apart from their neighbours
POSITIONS = 100  # at most, so that the Gram matrices of as many images fit
BEFORE, AFTER = PLACES.index("before"), PLACES.index("after")


def tables(subject: Subject, *models: nn.Module) -> list[Float64[Tensor, "rows columns"]]:
    """CKA of the first map and all blocks of one model, or of two: of all images, then by group."""
    rows = [(model, row_of_layers(model, subject.images)) for model in models]
    whole, alone = CKA(), []
    for images in subject.groups():
        maps = [outputs(m, images, row, subject.batch_size) for m, row in rows]
        group = CKA()
        for cka in (whole, group):
            cka.update(*maps)
        alone.append(group.result().values)
    return [whole.result().values, *alone]


def ends(subject: Subject, model: nn.Module, start: int) -> list[float]:
    """Mean CKA of the first two layers, from the layer ``start``, with the last two, as tables."""
    values = [table[start:, start:] for table in tables(subject, model)]
    layers = len(values[0])
    require(layers >= 4, f"has {layers} layers, so that the first two and the last two overlap")
    return [table[:2, -2:].mean().item() for table in values]


def beside(subject: Subject, maps: bool) -> tuple[nn.Module, nn.Module]:
    """The model with attention, and a convolutional network, or else another of tokens."""
    vit, other = compared(subject)
    last = row_of_layers(other, subject.images)[-1]
    on_maps = outputs(other, subject.images[:1], [last], 1)[last].ndim == 4
    what = "a second model with tokens but no attention, such as a Mixer"
    what = "a convolutional network as the second model" if maps else what
    require(on_maps == maps, f"needs {what}")
    return vit, other


def ends_alike(subject: Subject, maps: bool) -> Measured:
    """Mean CKA of the first two and the last two layers, less the same without attention.

    Of a convolutional network the first map is among the layers.
    """
    vit, other = beside(subject, maps)
    start = 0 if maps else 1
    mine, theirs = (ends(subject, model, start) for model in (vit, other))
    figure, *by_group = (a - b for a, b in zip(mine, theirs, strict=True))
    return Measured(figure, torch.tensor(by_group))


measures("C11", untrained=True)(partial(ends_alike, maps=True))
measures("C20", untrained=True)(partial(ends_alike, maps=False))


@measures("C12", untrained=True)
def matches(subject: Subject) -> Measured:
    """Fraction of a convolutional network's layers whose most similar layer of the model lies in
    its lowest quarter, or for those of the upper half in the next third."""
    figure, *by_group = map(in_range, tables(subject, *beside(subject, maps=True)))
    return Measured(figure, torch.tensor(by_group))


def in_range(values: Float64[Tensor, "layers others"]) -> float:
    """The fraction of columns whose largest entry is in the range claimed for their depth."""
    count, others = values.shape
    inside = 0
    for i, match in enumerate(values.argmax(0).tolist()):
        low, high = (0, 0.25) if i <= (others - 1) / 2 else (0.25, 0.25 + 1 / 3)
        inside += low <= match / (count - 1) <= high
    return inside / others


@measures("C15", slow=True)
def own_patches(subject: Subject) -> Measured:
    """Fraction of positions in the last block most like their own patch, less a network's."""
    subject.second()
    enough = len(subject.images) >= MANY
    require(enough, f"needs {MANY:,} images: the fraction grows with their number")
    batches = [batch for batch in subject.images.split(MANY) if len(batch) == MANY]
    fractions = []
    for model in compared(subject):
        name = row_of_layers(model, subject.images)[-1]
        x = outputs(model, subject.images[:1], [name], 1)[name]
        few = (x.shape[1] if x.ndim == 3 else x[0, 0].numel()) <= POSITIONS
        require(few, f"{name!r} has more than {POSITIONS} positions, too many to compare")
        hits = [localisation(model, [batch], name).hits.double().mean() for batch in batches]
        fractions.append(torch.tensor([x.item() for x in hits]))
    each = fractions[0] - fractions[1]
    return Measured(each.mean().item(), each)


@measures("H29", untrained=True)
def variance_by_attention(subject: Subject) -> Measured:
    """Mean of log2 of the ratio by which attention raises the variance over positions."""
    attention, _ = sublayers(subject.model, subject.images)
    images, size = subject.groups(), subject.batch_size
    results = [branch_variance(subject.model, x, batch_size=size) for x in images]
    through = torch.tensor([name in attention for name in results[0].names])
    require(through.any(), "has no attention in a residual branch")
    values = with_mean([result.values for result in results], images)
    whole, *by_group = ((x[AFTER] / x[BEFORE]).log2() for x in values)
    figures = torch.tensor([raised[through].mean().item() for raised in by_group])
    baselines = {} if through.all() else {"through its MLPs": whole[~through].mean().item()}
    curves = {"raised by attention": whole[through], "raised by MLPs": whole[~through]}
    return Measured(whole[through].mean().item(), figures, baselines, curves)


def variances(model: nn.Module, subject: Subject) -> tuple[Tensor, list[int]]:
    """Variance over positions of the first map and of each block's, and how many there are."""
    names = row_of_layers(model, subject.images)
    tokens, extra = outside(model, subject.images)
    where = [i for i in range(tokens) if i not in extra]
    total: Tensor = torch.zeros(())
    for batch in subject.images.split(subject.batch_size):
        by_name = outputs(model, batch, names, len(batch))
        maps = [x.flatten(2).mT if x.ndim == 4 else x for x in by_name.values()]
        maps = [x[:, where] if x.shape[1] == tokens else x for x in maps]
        total = total + torch.stack([variance_over_positions(x).sum() for x in maps])
    return total / len(subject.images), [x.shape[1] for x in maps]


@measures("H32", untrained=True)
def variance_grows(subject: Subject) -> Measured:
    """The smaller fraction: of steps at one size in which the variance over positions grows, or of
    a network's stages in which it peaks at the end."""
    vit, network = compared(subject)
    grows: list[bool] = []
    curves: dict[str, Tensor] = {}
    for model, name in ((vit, "variance"), (network, "variance, the network's")):
        values, sizes = variances(model, subject)
        same = [i for i in range(1, len(values)) if sizes[i] == sizes[i - 1]]
        grows += [bool(values[i] > values[i - 1]) for i in same]
        curves[name] = values
    last = len(values) - 1
    ends = [i for i in range(1, last + 1) if i == last or sizes[i] != sizes[i + 1]]
    peaks = [values[i] > values[i - 1] and (i == last or values[i] > values[i + 1]) for i in ends]
    require(len(ends) > 1, f"{type(network).__name__} has no stages of different sizes")
    figure = min(sum(grows) / len(grows), float(sum(peaks)) / len(peaks))
    return Measured(figure, curves=curves)
