"""Figures are stacked for phones where their panels stand side by side, and only there."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from book.tools.mobile_layout import encode, panels, stack


@pytest.fixture(autouse=True)
def style():
    with plt.style.context("vitlab.figures.book"):
        yield
    plt.close("all")


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_panels_of_one_row_are_stacked_and_the_figure_stays(columns):
    figure, _ = plt.subplots(1, columns, figsize=(8, 3))
    before = tuple(figure.get_size_inches())
    with Image.open(io.BytesIO(base64.b64decode(encode(figure)))) as narrow:
        assert narrow.format == "WEBP" and narrow.width == 440 < narrow.height
    assert tuple(figure.get_size_inches()) == before and plt.get_fignums() == [figure.number]


def test_other_figures_are_left_alone():
    for shape, options in [
        ((1, 1), {"figsize": (8, 3)}),
        ((2, 2), {"figsize": (8, 6)}),
        ((1, 2), {"figsize": (4.5, 3)}),  # fits a phone as it is
        ((1, 2), {"figsize": (8, 3), "width_ratios": (5, 1)}),
    ]:
        figure, _ = plt.subplots(*shape, **options)
        assert panels(figure) == [] and encode(figure) is None


@pytest.mark.parametrize("wide", ["legend", "label"])
def test_what_is_wider_than_the_stacked_sheet_is_not_cut(wide):
    figure, axes = plt.subplots(1, 2, figsize=(8, 3))
    (line,) = axes[0].plot([1, 2])
    if wide == "legend":
        figure.legend([line] * 3, ["one of three names"] * 3, ncols=3, loc="outside lower center")
    else:
        axes[1].set_xlabel("a label that is wider than the panel, " * 2)
    with Image.open(io.BytesIO(base64.b64decode(encode(figure)))) as narrow:
        grey = np.asarray(narrow.convert("L"))
    assert grey.shape[1] > 440
    assert grey[:, [0, -1]].min() > 200  # nothing reaches the edge


def test_images_become_two_rows_a_colour_bar_is_no_panel_and_shared_axes_get_labels():
    figure, axes = plt.subplots(1, 4, figsize=(8, 3))
    for ax in axes:
        image = ax.imshow([[0, 1]])
        ax.set_axis_off()
    figure.colorbar(image, ax=axes)
    assert panels(figure) == list(axes)
    stack(figure)
    assert {ax.get_subplotspec().rowspan.start for ax in axes} == {0, 1}
    figure, (first, second) = plt.subplots(1, 2, sharey=True, figsize=(8, 3))
    first.set_ylabel("accuracy")
    arrow = first.annotate("", (1.3, 0.5), (1.1, 0.5), "axes fraction", arrowprops={})
    stack(figure)
    assert second.get_ylabel() == "accuracy" and arrow.xy[1] < arrow.xyann[1] < 0
    assert second.yaxis.get_tick_params()["labelleft"]
    assert first.get_subplotspec().rowspan != second.get_subplotspec().rowspan
