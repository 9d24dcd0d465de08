"""Figures to take: drawn from a notebook with their licence, offered under it, found by name."""

import io
import re
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import pytest
from PIL import Image

from book._ext import drawn, take
from book.tools import figures
from book.tools.address import ROOT

PAGE = """<p>before</p>
<figure class="align-default" id="fig-one"><img alt="A line." src="../_images/abc.png" />
<figcaption><p><span class="caption-number">Fig. 2.1 </span><span class="caption-text">A line.</span>
</p></figcaption></figure>
<figure class="align-default" id="fig-slider"><figure class="frames"><img src="data:image/webp;base64,AA">
</figure><figcaption><span class="caption-number">Fig. 2.2 </span></figcaption></figure>
"""


def test_a_figures_files_name_their_licence_and_are_the_same_each_time():
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1], [1, 0])
    for kind in figures.KINDS:
        assert figures.drawn(figure, kind) == figures.drawn(figure, kind)
    svg = b64decode(figures.drawn(figure, "svg")).decode()
    ElementTree.fromstring(svg)
    assert "CC BY 4.0" in svg and "The minivit authors" in svg
    png = Image.open(io.BytesIO(b64decode(figures.drawn(figure, "png"))))
    assert "CC BY 4.0" in png.text["Copyright"] and png.info["dpi"][0] > 299
    plt.close(figure)


@pytest.mark.full
def test_a_chapters_named_figures_are_written_and_the_chapter_is_not(tmp_path, monkeypatch):
    cells = [
        "import matplotlib.pyplot as plt",
        "plt.plot([0, 1])\nplt.show()",
        "plt.plot([1, 0])\nplt.show()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.cells[1].metadata["mystnb"] = {"figure": {"name": "fig-one", "caption": "A line."}}
    path = tmp_path / "02_lines.ipynb"
    nbformat.write(notebook, path)
    before = path.read_bytes()
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "drawn")
    monkeypatch.setattr("sys.argv", ["figures", str(path)])
    assert figures.main() == 0
    assert sorted(file.name for file in (tmp_path / "drawn").iterdir()) == [
        "fig-one.png",
        "fig-one.svg",
    ]
    assert path.read_bytes() == before


class App:
    class config:
        html_baseurl = "https://owner.github.io/book/"


def test_the_line_stands_under_a_figure_and_not_under_a_slider(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "DRAWN", tmp_path)
    context = {"body": PAGE}
    take.offer(App, "book/02_attention", "page.html", context, None)
    (line,) = re.findall(r'<span class="take">.*</span></figcaption>', context["body"])
    assert (
        '<a href="../_images/abc.png" download="fig-one.png">PNG</a>' in line and "SVG" not in line
    )
    cited = re.search(r'data-clipboard-text="([^"]*)"', line)[1]
    assert cited.startswith("Figure 2.1 of “") and cited.endswith(
        ", https://owner.github.io/book/book/02_attention.html#fig-one. CC BY 4.0."
    )

    for kind in ("svg", "png"):
        (tmp_path / f"fig-one.{kind}").touch()
    context = {"body": PAGE}
    take.offer(App, "book/02_attention", "page.html", context, None)
    for kind in ("svg", "png"):
        assert (
            f'href="../_static/figures/fig-one.{kind}" download="fig-one.{kind}"' in context["body"]
        )


def test_pages_are_written_again_once_other_figures_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "DRAWN", tmp_path)
    env = SimpleNamespace(found_docs={"index", "book/figures", "book/02_attention"})
    pages = ["book/02_attention", "book/figures"]
    assert take.outdated(App, env) == pages  # the first build
    assert take.outdated(App, env) == []
    (tmp_path / "fig-one.svg").touch()
    assert take.outdated(App, env) == pages
    assert take.outdated(App, env) == []


def test_every_named_figure_of_a_notebook_is_listed_once():
    listed = [cell.metadata["mystnb"]["figure"]["name"] for _, cell, _ in drawn.figures()]
    named = {
        cell.metadata["mystnb"]["figure"]["name"]
        for path in ROOT.glob("book/*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
        if "figure" in cell.metadata.get("mystnb", {})
    }
    assert len(set(listed)) == len(listed) > 100
    assert set(listed) == named
