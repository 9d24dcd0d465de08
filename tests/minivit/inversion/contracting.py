"""Models whose residual branches can be undone by a fixed point."""

import minivit
from tests.minivit.parity import draw


def made(name, scale=0.1, **changes):
    """A model, random in every number, whose branches are small enough to contract."""
    model = draw(minivit.create(name, **changes).double().eval())
    for part in model.modules():
        if isinstance(part, minivit.MultiHeadAttention):
            part.out.weight *= scale
        elif hasattr(part, "down"):
            part.down.weight *= scale
    return model
