"""Models that ``torch.compile`` wraps are looked into by their own names, with the same result."""

import matplotlib

matplotlib.use("Agg")
import pytest
import torch

from tests.vitlab.instruments.models import DEPTH, everybodys
from vitlab import instruments as analysis
from vitlab.calls import activation, sublayer
from vitlab.figures import attention_overlay, rollout_overlay
from vitlab.inversion import invert

LABELS = torch.tensor([1, 2])

# Of the model, images, and the name of its last block.
INSTRUMENTS = {
    "distance": lambda m, x, block: analysis.attention_distance(m, x).pixels,
    "rollout": lambda m, x, block: analysis.rollout(m, x).matrices,
    "lens": lambda m, x, block: analysis.logit_lens(m, x).logits,
    "ablation": lambda m, x, block: analysis.token_ablation(m, x),
    "heads": lambda m, x, block: analysis.head_importance(m, x, LABELS).loss,
    "branches": lambda m, x, block: analysis.branch_importance(m, x, LABELS).loss,
    "heads by mean": lambda m, x, block: analysis.head_importance(m, x, LABELS, by="mean").loss,
    "blocks": lambda m, x, block: analysis.block_importance(m, x, LABELS, by="resample").loss,
    "relevance": lambda m, x, block: analysis.relevance(m, x).matrices,
    "deletion": lambda m, x, block: (
        analysis.deletion_curves(m, x, torch.eye(2, 12), grid=(3, 4)).deletion
    ),
    "norms": lambda m, x, block: analysis.token_norms(m, x).patches,
    "layer frequencies": lambda m, x, block: (
        analysis.layer_frequencies(m, x, block)[block].after.values
    ),
    "stream frequencies": lambda m, x, block: (
        analysis.stream_frequencies(m, x)[f"{block}.mlp"].sum.values
    ),
    "response": lambda m, x, block: analysis.attention_response(m, x)[block].gain,
    "ratios": lambda m, x, block: analysis.branch_ratios(m, x).ratio,
    "field": lambda m, x, block: analysis.receptive_field(m, x, block).sensitivity,
    "spectrum": lambda m, x, block: analysis.spectrum(m, x, at=block).values,
    "activation": lambda m, x, block: activation(m, block)(x),
    "sublayer": lambda m, x, block: sublayer(m, block, x)[1],
    "invert": lambda m, x, block: invert(m, x, at=block, steps=2).feature_distance,
    "attention overlay": lambda m, x, block: drawn(attention_overlay(m, x[0])),
    "rollout overlay": lambda m, x, block: drawn(rollout_overlay(m, x[0])),
}


def drawn(figure):
    return torch.stack([torch.as_tensor(ax.images[1].get_array()) for ax in figure.axes])


@pytest.mark.parametrize("instrument", INSTRUMENTS)
def test_every_instrument_takes_the_names_of_what_was_compiled(instrument):
    model, pictures, _ = everybodys("timm")
    if instrument == "spectrum":
        pictures = pictures[:1]
    call, block = INSTRUMENTS[instrument], f"blocks.{DEPTH - 1}"
    torch.manual_seed(0)
    known = call(model, pictures, block)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(pictures)  # so that what runs is compiled already, and would call no new hook
    torch.manual_seed(0)
    torch.testing.assert_close(call(compiled, pictures, block), known)
