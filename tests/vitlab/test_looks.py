"""Overlays of everybody's models: the values that are drawn, on grids that are not square."""

from functools import partial

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
import torch

import minivit
from tests.parity import draw
from tests.refusals import assert_refused, unchecked
from tests.vitlab.instruments.models import DEPTH, HEADS, MODELS, Known, everybodys, images
from vitlab.figures import attention_overlay, heat, rollout_overlay
from vitlab.instruments import rollout


def drawn(figure):
    """The heat map of every panel, and its title; panels without one are left out."""
    return {ax.get_title(): ax.images[1].get_array() for ax in figure.axes if ax.images}


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_heads_are_drawn_over_the_image(name):
    _, block, attention, extra = MODELS[name]
    model, pictures, grid = everybodys(name)
    panels = drawn(attention_overlay(model, pictures[0], block=1))
    part = f"{block.format(1)}.{attention}.weights"
    with minivit.record(model, part) as seen:
        model(pictures[:1])
    weights = seen[part][0]
    looks = weights[:, 0] if extra else weights.mean(1)
    assert len(panels) == HEADS
    for (title, panel), row in zip(panels.items(), looks[:, extra:], strict=True):
        known = heat(row / row.max(), grid, pictures.shape[2:])
        np.testing.assert_allclose(panel, known, rtol=1e-5)
        assert title.endswith(f": {row.max():.2f}")
    panels = drawn(rollout_overlay(model, pictures[:1], identity=0.3))
    shares = rollout(model, pictures[:1], identity=0.3).patches[:, 0]
    assert len(panels) == DEPTH
    for panel, row in zip(panels.values(), shares, strict=True):
        np.testing.assert_allclose(panel, heat(row / row.max(), grid, pictures.shape[2:]))


def test_a_query_is_framed_and_its_attention_drawn():
    weights = torch.ones(1, 14, 14)
    weights[0, 2 + 6] = torch.eye(14)[2 + 11]  # the patch in row 1, column 2, to the last
    model = Known(torch.eye(14)[None], weights, extra=2)
    figure = attention_overlay(model, images(1), query=(1, 2))
    ((title, panel),) = drawn(figure).items()
    assert title == "head 0: 1.00"
    assert panel[16:, 24:].min() == 1 and panel.sum() == pytest.approx(64)
    (frame,) = figure.axes[0].patches
    assert frame.get_xy() == (15.5, 7.5)


def test_many_heads_stand_in_lines():
    model = draw(minivit.create("vit_32px", heads=8, depth=2))
    figure = attention_overlay(model, images(1, (32, 32)))
    assert len(drawn(figure)) == 8 and len(figure.axes) == 12


def test_images_in_half_precision_and_with_gradients_are_drawn():
    model, pictures, grid = everybodys("timm")
    known = drawn(rollout_overlay(model, pictures[0]))
    model.bfloat16()
    for call in rollout_overlay, attention_overlay:
        panels = drawn(call(model, pictures[0].bfloat16().requires_grad_()))
        assert len(panels) == (DEPTH if call is rollout_overlay else HEADS)
    half = drawn(rollout_overlay(model, pictures[0].bfloat16()))
    for a, b in zip(half.values(), known.values(), strict=True):
        np.testing.assert_allclose(a, b, atol=0.03)
    broken = torch.where(torch.arange(32) < 4, torch.nan, pictures[0]).bfloat16()
    for call in rollout_overlay, attention_overlay:
        with unchecked(), pytest.raises(ValueError, match="expected images of finite numbers"):
            call(model, broken)


def test_what_cannot_be_drawn_is_refused():
    model, mixer = draw(minivit.create("vit_32px", depth=2)), minivit.create("mixer_32px")
    overlaid = partial(attention_overlay, model, images(1, (32, 32)))
    assert_refused([
        (partial(attention_overlay, model, images(2, (32, 32))), ValueError, r"one image .*: got \[2, 3, 32, 32\]"),
        (partial(overlaid, query=(8, 0)), ValueError, r"a patch of 8 x 8: got \(8, 0\)"),
        (partial(overlaid, query=2), ValueError, r"query=\(rows, columns\): got 2"),
        (partial(overlaid, grid=3), ValueError, r"grid=\(rows, columns\): got 3"),
        (partial(overlaid, block=2), IndexError, "one of 2 blocks: got block=2"),
        (partial(rollout_overlay, mixer, images(1, (32, 32))), ValueError, "Mixer computes no attention between tokens"),
    ])  # fmt: skip
