"""Whether attention smooths, and how the variance over positions changes with depth."""

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.parts import FIRST, compared, outputs, row_of_layers, sublayers
from vitlab.claims.probes.subjects import (
    before_training,
    figure_of,
    groups,
    second,
    spread,
    weighted,
)
from vitlab.instruments import branch_variance
from vitlab.instruments.layout import outside
from vitlab.instruments.variance import PLACES, variance_over_positions

BEFORE, AFTER = PLACES.index("before"), PLACES.index("after")


@probe(
    "H29",
    "By how much does attention raise the variance over positions in this model's residual stream?",
)
def variance_by_attention(subject: Subject) -> Measured:
    """Mean binary logarithm of the ratio after to before."""
    attention, _ = sublayers(subject.model, subject.images)
    some = groups(subject.images)
    found = [branch_variance(subject.model, x, batch_size=subject.batch_size) for x in some]
    through = torch.tensor([name in attention for name in found[0].names])
    if not through.any():
        raise CannotAsk("has no attention in a residual branch")

    def raised(values: Tensor) -> Float64[Tensor, "branches"]:
        return (values[AFTER] / values[BEFORE]).log2()

    whole = raised(weighted([one.values for one in found], some))
    each = [raised(one.values)[through].mean().item() for one in found]
    baselines = before_training(subject, figure_of(variance_by_attention))
    if not through.all():
        baselines["through its MLPs"] = whole[~through].mean().item()
    curves = {"raised by attention": whole[through], "raised by MLPs": whole[~through]}
    return Measured(whole[through].mean().item(), spread(each), baselines, curves)


def variances(model: nn.Module, subject: Subject) -> tuple[Tensor, list[int]]:
    """Variance over positions of the first map and of each block's, and how many there are."""
    names = row_of_layers(model, subject.images)
    tokens, extra = outside(model, subject.images)
    where = [i for i in range(tokens) if i not in extra]
    total: Tensor = torch.zeros(())
    for batch in subject.images.split(subject.batch_size):
        found = outputs(model, batch, names, len(batch), first=names[0])
        maps = [x.flatten(2).mT if x.ndim == 4 else x for x in (found[n] for n in (FIRST, *names))]
        maps = [x[:, where] if x.shape[1] == tokens else x for x in maps]
        total = total + torch.stack([variance_over_positions(x).sum() for x in maps])
    return total / len(subject.images), [x.shape[1] for x in maps]


@probe(
    "H32",
    "Does the variance over positions grow from block to block in this model and in a "
    "convolutional network, and peak at the end of each stage of the network?",
    needs=(second,),
)
def variance_grows(subject: Subject) -> Measured:
    """The smaller fraction: of steps at one size that grow, or of stages that peak at their end."""
    vit, network = compared(subject)
    grows: list[bool] = []
    curves: dict[str, Tensor] = {}
    for model, what in ((vit, "variance"), (network, "variance, the network's")):
        values, sizes = variances(model, subject)
        same = [i for i in range(1, len(values)) if sizes[i] == sizes[i - 1]]
        grows += [bool(values[i] > values[i - 1]) for i in same]
        curves[what] = values
    last = len(values) - 1
    ends = [i for i in range(1, last + 1) if i == last or sizes[i] != sizes[i + 1]]
    peaks = [values[i] > values[i - 1] and (i == last or values[i] > values[i + 1]) for i in ends]
    if len(ends) < 2:
        raise CannotAsk(f"{type(network).__name__} has no stages of different sizes")
    figure = min(sum(grows) / len(grows), float(sum(peaks)) / len(peaks))
    return Measured(figure, curves=curves)
