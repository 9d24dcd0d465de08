"""Figures: sliders, heat maps and curves, and overlays of everybody's models."""

import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib.text import Text

import minivit
from tests.vitlab.instruments.models import DEPTH, HEADS, MODELS, Known, everybodys, images
from vitlab import figures
from vitlab.instruments import rollout


def bars(value):
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.bar([0], [value])
    return figure


@pytest.fixture
def ax():
    yield plt.figure().subplots()
    plt.close()


def test_frames_show_one_image_and_hide_the_others():
    before = plt.get_fignums()
    frames = figures.Frames(bars, [0.5, 2, 8], "height", "bar {value} high", start=1)
    assert plt.get_fignums() == before  # those that it drew are closed
    html = BeautifulSoup(frames._repr_html_(), "html.parser")
    pictures = html.find_all("img")
    assert [p["alt"] for p in pictures] == ["bar 0.5 high", "bar 2 high", "bar 8 high"]
    assert [p.get("style") for p in pictures] == ["display:none", None, "display:none"]
    slider = html.find("input")
    assert (slider["max"], slider["value"], slider["aria-valuetext"]) == ("2", "1", "2")
    assert html.find("label").text.strip() == "height"
    assert html.find("output").text == "2"


def test_no_text_in_frames_is_too_small_on_a_phone():
    drawn = []

    def wide(value):
        figure, axes = plt.subplots(1, 2, figsize=(10, 2))
        axes[0].plot([0, value], label="a line")
        axes[0].set_title("small", fontsize=6)
        axes[1].set_title("large", fontsize=30)
        axes[0].legend(fontsize=5)
        drawn.append(figure)
        return figure

    figures.Frames(wide, [1, 1000], "height", "line to {value}")
    for figure in drawn:
        sizes = {text.get_text(): text.get_fontsize() for text in figure.findobj(Text)}
        assert sizes["small"] == sizes["a line"] == 17
        assert sizes["large"] == 30
        assert min(sizes.values()) * 342 / 72 / 10 > 8  # pixels


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_overlays_take_every_precision_and_tensors_with_gradients(dtype, ax):
    picture = torch.full((3, 4, 6), 0.5, dtype=dtype, requires_grad=True)
    values = torch.tensor([0.0, 0.25, 0.5, 0.75, 1, 0], dtype=dtype, requires_grad=True)
    figures.overlay(ax, picture, values, (2, 3))
    grey, shares = (image.get_array() for image in ax.images)
    assert (grey == 0.5).all() and shares[::2, ::2].flatten().tolist() == values.tolist()
    assert shares[0].tolist() == shares[1].tolist() == [0, 0, 0.25, 0.25, 0.5, 0.5]


def test_a_dark_patch_is_seen_where_it_is_lit_and_the_rest_keeps_a_fifth_of_its_light(ax):
    for light in (0, 127):
        figures.overlay(ax, torch.full((3, 1, 2), light / 255), torch.tensor([1.0, 0]), (1, 2))
        weights = ax.images[-1].to_rgba(ax.images[-1].get_array())
        lit, unlit = ((1 - w[3]) * light / 255 + w[3] * w[:3] for w in weights[0])
        assert lit.min() > light / 255 + 0.05 and unlit == pytest.approx([light / 255 / 5] * 3)


def test_a_curve_shows_training_and_validation_by_epoch():
    lines = [
        {"epoch": epoch, "loss": loss, "accuracy": accuracy,
         "validation": {"accuracy": accuracy - 0.1, "log_likelihood": -loss - 0.2}}
        for epoch, loss, accuracy in ((1, 2.0, 0.3), (2, 1.0, 0.6), (3, 0.5, 0.8))
    ]  # fmt: skip
    loss, accuracy = figures.curve(lines).axes
    drawn = [list(one.get_ydata()) for one in (*loss.lines, *accuracy.lines)]
    assert drawn[0] == [2.0, 1.0, 0.5] and drawn[1] == pytest.approx([2.2, 1.2, 0.7])
    assert drawn[2] == [0.3, 0.6, 0.8] and drawn[3] == pytest.approx([0.2, 0.5, 0.7])
    assert list(loss.lines[0].get_xdata()) == [1, 2, 3]


def test_a_confusion_matrix_is_coloured_by_fractions_of_its_rows_and_counts_images():
    ax = figures.confusion_figure(torch.tensor([[3, 1], [0, 8]]), ["cat", "dog"]).axes[0]
    assert ax.images[0].get_array().tolist() == [[0.75, 0.25], [0, 1]]
    assert [text.get_text() for text in ax.texts] == ["3", "1", "8"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["cat", "dog"]
    odd = figures.confusion_figure(torch.eye(2, dtype=torch.int64), ["$5_bill$ {", "caf\udce9"])
    odd.savefig(io.BytesIO())
    many = figures.confusion_figure(torch.eye(80, dtype=torch.int64), [str(i) for i in range(80)])
    assert not many.axes[0].texts


def drawn(figure):
    """The heat map of every panel, and its title; panels without one are left out."""
    return {ax.get_title(): ax.images[1].get_array() for ax in figure.axes if ax.images}


def test_a_query_is_framed_and_its_attention_drawn():
    weights = torch.ones(8, 14, 14)
    weights[0, 2 + 6] = torch.eye(14)[2 + 11]  # the patch in row 1, column 2, to the last
    model = Known(torch.eye(14)[None], weights, extra=2)
    figure = figures.attention_overlay(model, images(1), query=(1, 2))
    panels = drawn(figure)
    assert len(panels) == 8 and len(figure.axes) == 12  # in two lines
    panel = panels["head 0: 1.00"]
    assert panel[16:, 24:].min() == 1 and panel.sum() == pytest.approx(64)
    (frame,) = figure.axes[0].patches
    assert frame.get_xy() == (15.5, 7.5)
    assert (frame.get_width(), frame.get_height()) == (8, 8)


@pytest.mark.parametrize("name", MODELS)
def test_everybodys_heads_are_drawn_over_the_image(name):
    _, block, attention, extra = MODELS[name]
    model, pictures, grid = everybodys(name)
    panels = drawn(figures.attention_overlay(model, pictures[0], block=1))
    part = f"{block.format(1)}.{attention}.weights"
    with minivit.record(model, "*.weights") as seen:
        model(pictures[:1])
    weights = seen[part][0]
    looks = weights[:, 0] if extra else weights.mean(1)
    if name == "minivit attention":
        looks = seen["pool.weights"][0].mean(0) @ weights
    assert len(panels) == HEADS
    for (title, panel), row in zip(panels.items(), looks[:, extra:], strict=True):
        known = figures.heat(row / row.max(), grid, pictures.shape[2:])
        np.testing.assert_allclose(panel, known, rtol=1e-5)
        assert title.endswith(f": {row.max():.2f}")
    panels = drawn(figures.rollout_overlay(model, pictures[:1]))
    shares = rollout(model, pictures[:1]).patches[:, 0]
    assert len(panels) == DEPTH
    for panel, row in zip(panels.values(), shares, strict=True):
        np.testing.assert_allclose(panel, figures.heat(row / row.max(), grid, pictures.shape[2:]))
