import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pytest
import torch
from bs4 import BeautifulSoup

from minivit.figures import Frames, heat, overlay


def draw(value):
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.bar([0], [value])
    return figure


def test_frames_show_one_picture_and_hide_the_others():
    html = BeautifulSoup(
        Frames(draw, [0.5, 2, 8], "height", "bar {value} high", start=1)._repr_html_(),
        "html.parser",
    )
    pictures = html.find_all("img")
    assert [p["alt"] for p in pictures] == ["bar 0.5 high", "bar 2 high", "bar 8 high"]
    assert [p.has_attr("hidden") for p in pictures] == [True, False, True]
    slider = html.find("input")
    assert (slider["max"], slider["value"], slider["aria-valuetext"]) == ("2", "1", "2")
    assert html.find("label").text.strip() == "height"
    assert html.find("output").text == "2"


def test_frames_close_the_figures_they_draw():
    before = plt.get_fignums()
    Frames(draw, [1, 2], "height", "bar {value}")
    assert plt.get_fignums() == before


@pytest.mark.parametrize(("values", "start"), [([1], 0), ([1, 2], 2), ([1, 2], -1)])
def test_frames_refuse_too_few_values_and_a_start_that_is_none_of_them(values, start):
    with pytest.raises(ValueError, match=f"got {len(values)} values and start={start}"):
        Frames(draw, values, "height", "bar {value}", start=start)


def test_heat_spreads_each_value_over_its_patch():
    pixels = heat(torch.tensor([1.0, 2, 3, 4, 5, 6]), (2, 3), (4, 6))
    assert pixels.shape == (4, 6)
    assert pixels[0].tolist() == [1, 1, 2, 2, 3, 3]
    assert pixels[3].tolist() == [4, 4, 5, 5, 6, 6]


@pytest.mark.parametrize(
    ("values", "size", "said"),
    [(5, (4, 6), "needs 6 values"), (6, (4, 7), "does not divide 4 x 7")],
)
def test_heat_refuses_what_does_not_fit(values, size, said):
    with pytest.raises(ValueError, match=said):
        heat(torch.ones(values), (2, 3), size)


def test_overlay_frames_the_query_on_a_grid_that_is_not_square():
    _, ax = plt.subplots()
    overlay(ax, torch.rand(3, 4, 6), torch.arange(6.0), (2, 3), query=4)  # second row, middle
    (frame,) = ax.patches
    assert frame.get_xy() == (1.5, 1.5)
    assert (frame.get_width(), frame.get_height()) == (2, 2)
    plt.close()
