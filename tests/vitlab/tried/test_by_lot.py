"""Ten of timm's architectures, drawn by lot: attention, rollout, relevance and distance by hand."""

import random

import pytest
import timm
import torch

from tests.parity import draw
from tests.vitlab.tried import instruments
from tests.vitlab.tried.architectures import TIMM, Patches, Tried

SEED, NAMES = 47, timm.list_models("*patch*")


def about(name):
    """What an architecture's source says: it reads by ``global_pool``, or two tokens if distilled."""
    model = draw(timm.create_model(name, **TIMM)).eval()
    extra = getattr(model, "num_prefix_tokens", 0)
    weights = "blocks.*.attn.weights" if model.global_pool == "map" else "*.weights"
    reads = {"token": "first", "avg": "patches", "map": "pool"}[model.global_pool]
    if "Distilled" in type(model).__name__:
        reads = 0, 1
    grids = {16 + extra: Patches((4, 4), extra)}
    return model, Tried(lambda: model, weights, grids=grids, reads=reads, others=(2,))


@pytest.mark.full
@pytest.mark.parametrize("name", random.Random(SEED).sample(NAMES, 10))
def test_what_is_drawn_by_lot_has_the_numbers_by_hand(name):
    model, tried = about(name)
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        instruments.recorded(model, images, tried)
        instruments.attention_distance(model, images, tried)
        instruments.rollout(model, images, tried)
        instruments.relevance(model, images, tried)
