"""A decoder that is trained to invert a model, on tokens that are known functions of patches."""

from dataclasses import replace

import pytest
import torch

from minivit.patches import patchify
from studies import trained_inverse
from studies.shared import inputs
from vitlab.data import Data, Split
from vitlab.data.shapes import CLASSES, draw_shapes
from vitlab.inversion import decibels
from vitlab.krylov import norms

DRAWN = {
    part: draw_shapes(n, seed=n) for part, n in (("train", 200), ("validation", 20), ("test", 60))
}
PATCHES = {part: patchify(drawn.images / 255, 4) for part, drawn in DRAWN.items()}
MAP = torch.randn(48, 64, generator=torch.Generator().manual_seed(0))


def least_decibels(tokens, monkeypatch, **settings):
    """Of the linear decoder and of the network, on the test part."""
    for name, value in settings.items():
        monkeypatch.setattr(trained_inverse, name, value)
    test = PATCHES["test"]
    both = trained_inverse.decoded(tokens, PATCHES)[:2]
    return [decibels(norms(found["test"] - test), test).min() for found in both]


def test_a_linear_map_of_each_patch_is_inverted_and_nothing_is_to_be_added(monkeypatch):
    tokens = {part: patches @ MAP for part, patches in PATCHES.items()}
    assert min(least_decibels(tokens, monkeypatch, SHORT=2, STEPS=2)) > 45


@pytest.mark.full
def test_the_network_finds_patches_in_far_tokens(monkeypatch):
    tokens = {part: patches.flip(1) @ MAP for part, patches in PATCHES.items()}
    linear, network = least_decibels(tokens, monkeypatch, SHORT=2, STEPS=100, RATES=(1e-2,))
    assert network > linear + 2


def test_no_picture_measured_may_be_one_that_was_learned_from(monkeypatch):
    parts = {part: Split(drawn.images, drawn.labels) for part, drawn in DRAWN.items()}
    data = Data.of("SHAPES", CLASSES, parts)
    inputs.shuffled.cache_clear()
    monkeypatch.setattr(inputs, "loaded", lambda name: data)
    assert len(trained_inverse.pictures()["train"]) == 200
    monkeypatch.setattr(inputs, "loaded", lambda name: replace(data, validation=data.test))
    with pytest.raises(AssertionError, match="known"):
        trained_inverse.pictures()
