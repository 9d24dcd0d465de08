"""Models whose residual branches can be undone by a fixed point, and what the tests share."""

import minivit
from tests.parity import draw


def relative(a, b):
    """The relative error of each entry."""
    return (a - b).flatten(1).norm(dim=1) / b.flatten(1).norm(dim=1)


def made(name, scale=0.1, removed=(), **changes):
    """A model, random in every number, whose branches are small enough to contract."""
    model = minivit.create(name, **changes)
    for part in removed:
        model = minivit.remove(model, part)
    model = draw(model.double().eval())
    for part in model.modules():
        if isinstance(part, minivit.MultiHeadAttention):
            part.out.weight *= scale
        elif hasattr(part, "down"):
            part.down.weight *= scale
    return model
