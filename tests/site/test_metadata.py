"""What a page says of itself, with and without an address of the site."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from PIL import Image
from sphinx.application import Sphinx

PAGES = {
    "index": "Book\n====\n\n.. toctree::\n\n   page\n",
    "page": "Page\n====\n\nHow can every patch of an image ask all the others for what it needs?\n"
    '\n.. image:: a.png\n   :alt: Two "curves" & a line.\n',
}


@pytest.mark.parametrize("base", ["", "https://example.org/book/"])
def test_a_page_shows_its_first_figure_once_the_site_has_an_address(base: str, tmp_path: Path):
    for name, text in PAGES.items():
        (tmp_path / f"{name}.rst").write_text(text)
    Image.new("RGB", (30, 20)).save(tmp_path / "a.png")
    out = tmp_path / "out"
    settings = {"extensions": ["book._ext.pages"], "html_theme": "basic",
                "html_title": "Vision transformers", "html_baseurl": base}  # fmt: skip
    Sphinx(tmp_path, None, out, tmp_path / "trees", "html", settings, status=None).build()

    def tree(name: str) -> BeautifulSoup:
        return BeautifulSoup((out / f"{name}.html").read_text(), "html.parser")

    def said(name: str) -> dict[str, str]:
        tags = tree(name)("meta", content=True)
        return {tag.get("property") or tag.get("name"): tag["content"] for tag in tags}

    assert tree("index").title.get_text() == "Vision transformers"
    assert tree("page").title.get_text().endswith("Vision transformers")
    page = said("page")
    assert page["description"].startswith("How can every patch")
    assert ("og:image" in page) == ("og:url" in page) == bool(base)
    if base:
        assert page["og:image"] == f"{base}_images/card-a.jpg"
        assert page["og:image:alt"] == 'Two "curves" & a line.'
        assert Image.open(out / "_images/card-a.jpg").size == (1200, 630)
        assert "og:image" not in said("index")  # nothing in this book lends it one
    assert said("search")["og:title"]
