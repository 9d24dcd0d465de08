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

from book._ext import figure_downloads
from book._ext import figures as of_notebooks
from book.tools import figures
from book.tools.address import ROOT
from book.tools.notebooks import cells, figure_name

PAGE = """<p>before</p>
<figure class="align-default" id="fig-one"><img alt="A line." src="../_images/abc.png" />
<figcaption><p><span class="caption-number">Fig. 2.1 </span><span class="caption-text">A line.</span>
</p></figcaption></figure>
<figure class="align-default" id="fig-slider"><figure class="frames"><img src="data:image/webp;base64,AA">
</figure><figcaption><span class="caption-number">Fig. 2.2 </span></figcaption></figure>
"""
APP = SimpleNamespace(config=SimpleNamespace(html_baseurl="https://owner.github.io/book/"))


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """The folder of figures that were drawn again, empty."""
    for module in (figures, figure_downloads):
        monkeypatch.setattr(module, "FIGURES", tmp_path / "drawn")
    (tmp_path / "drawn").mkdir()
    return tmp_path / "drawn"


def test_a_figures_files_name_their_licence_and_are_the_same_each_time():
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1], [1, 0])
    for kind in figures.KINDS:
        assert figures.encode(figure, kind) == figures.encode(figure, kind)
    svg = b64decode(figures.encode(figure, "svg")).decode()
    ElementTree.fromstring(svg)
    assert "CC BY 4.0" in svg and "The minivit authors" in svg
    png = Image.open(io.BytesIO(b64decode(figures.encode(figure, "png"))))
    assert "CC BY 4.0" in png.text["Copyright"] and png.info["dpi"][0] > 299
    plt.close(figure)


@pytest.mark.full
def test_a_chapters_named_figures_are_written_and_the_chapter_is_not(tmp_path, drawn, monkeypatch):
    code = ["import matplotlib.pyplot as plt", "plt.plot([0, 1])\nplt.show()", "plt.plot([1, 0])"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in code])
    notebook.cells[1].metadata["mystnb"] = {"figure": {"name": "fig-one", "caption": "A line."}}
    path = tmp_path / "02_lines.ipynb"
    nbformat.write(notebook, path)
    before = path.read_bytes()
    monkeypatch.setattr("sys.argv", ["figures", str(path)])
    figures.main()
    assert sorted(file.name for file in drawn.iterdir()) == ["fig-one.png", "fig-one.svg"]
    assert path.read_bytes() == before


def test_the_line_stands_under_a_figure_and_not_under_a_slider_with_what_was_drawn(drawn):
    def offered():
        context = {"body": PAGE}
        figure_downloads.offer(APP, "book/02_attention", "page.html", context, None)
        (line,) = re.findall(r'<span class="take">.*</span></figcaption>', context["body"])
        return line

    line = offered()
    assert '<a href="../_images/abc.png" download="fig-one.png">PNG</a>' in line
    assert "SVG" not in line
    cited = re.search(r'data-clipboard-text="([^"]*)"', line)[1]
    url = "https://owner.github.io/book/book/02_attention.html#fig-one"
    assert cited.startswith("Figure 2.1 of “") and cited.endswith(f", {url}. CC BY 4.0.")
    for kind in ("svg", "png"):
        (drawn / f"fig-one.{kind}").touch()
        link = f'href="../_static/figures/fig-one.{kind}" download="fig-one.{kind}"'
        assert link in offered()


def test_every_named_figure_is_listed_and_pages_are_written_again_once_others_are_drawn(drawn):
    listed = [figure_name(cell) for _, cell, _ in of_notebooks.figures()]
    named = {figure_name(cell) for path in ROOT.glob("book/*.ipynb") for cell in cells(path)} - {""}
    assert len(set(listed)) == len(listed) > 100 and set(listed) == named
    env = SimpleNamespace(found_docs={"index", "book/figures", "book/02_attention"})
    for _ in range(2):  # the first build, and one after a figure
        assert figure_downloads.outdated(APP, env) == ["book/02_attention", "book/figures"]
        assert figure_downloads.outdated(APP, env) == []
        (drawn / "fig-one.svg").touch()
