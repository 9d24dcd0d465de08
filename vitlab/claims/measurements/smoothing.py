"""Whether attention smooths, and how the variance over positions changes with depth."""

import torch
from torch import Tensor, nn

from vitlab.claims.measurements.parts import FIRST, compared, outputs, row_of_layers, sublayers
from vitlab.claims.measuring import Measured, Subject, measures, require, with_mean
from vitlab.instruments import branch_variance
from vitlab.instruments.layout import outside
from vitlab.instruments.variance import PLACES, variance_over_positions

BEFORE, AFTER = PLACES.index("before"), PLACES.index("after")


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
        by_name = outputs(model, batch, names, len(batch), first=True)
        maps = [by_name[name] for name in (FIRST, *names)]
        maps = [x.flatten(2).mT if x.ndim == 4 else x for x in maps]
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
