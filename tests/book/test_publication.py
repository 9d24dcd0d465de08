"""A clone with an address of its own: built as the workflow would, the site has it everywhere."""

import os
import re
import subprocess
import sys
from itertools import product
from xml.etree import ElementTree

import pytest
import yaml
from bs4 import BeautifulSoup
from jupyter_book.config import get_final_config
from nbformat import v4, writes

from book.tools.address import ROOT, normal, repository, site

URL = "https://github.com/Someone/a-book"
PULL = (
    "git-pull%3Frepo%3Dhttps%253A%252F%252Fgithub.com%252FSomeone%252Fa-book%26branch%3Dmain"
    "%26targetPath%3Dbook%26depth%3D1%26urlpath%3Dlab%252Ftree%252Fbook%252Ffirst.ipynb"
)
NOWHERE = {"MINIVIT_REPOSITORY": ""}
WORKFLOW = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "Someone/a-book"}
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
# Of the theme as the book has it. Jupyter Book names its own repository where there is no other.
BOOK = get_final_config(user_yaml=ROOT / "_config.yml", cli_config={"latex_individualpages": False})
THEME = BOOK[0]["html_theme_options"]
CONF = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
extensions = ["myst_nb", "sphinx_book_theme", "sphinx.ext.githubpages", "book._ext.publication"]
html_theme = "sphinx_book_theme"
html_theme_options = {THEME}
nb_execution_mode = "off"
root_doc = "first"
templates_path = [{str(ROOT / "book/_templates")!r}]
html_additional_pages = {CONFIG["html_additional_pages"]}
"""


def build(folder, variables):
    """A site of one notebook, made with the book's extension and theme."""
    cells = [v4.new_markdown_cell("# A page")]
    (folder / "source").mkdir(exist_ok=True)
    kernel = {"name": "python3", "display_name": "Python 3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = v4.new_notebook(cells=cells, metadata=about)
    (folder / "source/first.ipynb").write_text(writes(notebook))
    (folder / "source/conf.py").write_text(CONF)
    without = {name: value for name, value in os.environ.items()
               if name not in {"MINIVIT_REPOSITORY", *WORKFLOW}}  # fmt: skip
    command = [sys.executable, "-m", "sphinx", "-q", "-W", folder / "source", folder / "built/html"]
    subprocess.run(command, env=without | variables, check=True)
    return folder / "built/html"


def links(page):
    return [tag["href"] for tag in BeautifulSoup(page.read_text(), "html.parser").select("[href]")]


@pytest.mark.full
def test_with_an_address_the_site_has_it_everywhere_and_without_one_nowhere(tmp_path):
    out = build(tmp_path, WORKFLOW)
    assert {
        URL,
        f"https://mybinder.org/v2/gh/Someone/a-book/environment?urlpath={PULL}",
        "https://colab.research.google.com/github/Someone/a-book/blob/launch/first.ipynb",
        "https://someone.github.io/a-book/first.html",  # canonical
    } <= set(links(out / "first.html"))
    assert links(out / "404.html") == ["https://someone.github.io/a-book/", "data:,", "first.html"]
    pages = "https://someone.github.io/a-book"
    assert f"<loc>{pages}/first.html</loc>" in (out / "sitemap.xml").read_text()
    assert f"Sitemap: {pages}/sitemap.xml" in (out / "robots.txt").read_text()
    assert f"%pip install {pages}/wheels/" in (out / "_sources/first.ipynb").read_text()
    assert (out / ".nojekyll").is_file()
    feed = ElementTree.parse(out / "feed.xml").getroot()
    entries = feed.findall("{*}entry")
    for entry, field in product((feed, *entries), ("id", "title", "updated")):
        assert entry.findtext(f"{{*}}{field}")
    assert feed.findtext("{*}author/{*}name")
    assert entries[0].find("{*}link").get("href").startswith(f"{pages}/book/claims/")

    out = build(tmp_path, NOWHERE)  # over the first, as `make site` would
    for page in ("first.html", "404.html"):
        assert not re.findall(r"github\.com|github\.io|mybinder|colab", (out / page).read_text())
    assert not any((out / name).exists() for name in ("sitemap.xml", "robots.txt", "feed.xml"))
    assert "pip" not in (out / "_sources/first.ipynb").read_text()


GITHUB = (
    "git@github.com:Someone/a-book.git", "https://github.com/Someone/a-book.git", URL + "/",
    "ssh://git@github.com/Someone/a-book", "https://name:token@github.com/Someone/a-book.git",
)  # fmt: skip
ELSEWHERE = (
    "/srv/git/a-book", "file:///srv/git/a-book", "../a-book", "http://127.0.0.1:3000/Someone/a-book",
    "https://gitlab.com/Someone/a-book", "https://github.com/Someone", "https://github.com.evil.org/a/b",
)  # fmt: skip


def test_an_address_may_be_written_as_git_takes_it_and_others_count_as_none():
    assert [normal(address) for address in GITHUB] == [URL] * 5
    assert [normal(address) for address in ELSEWHERE] == [""] * 7
    owners = "https://github.com/Someone/someone.github.io"
    assert site(owners) == "https://someone.github.io/", "shown at its root"
    other = "https://github.com/other/book"
    assert repository(WORKFLOW | {"MINIVIT_REPOSITORY": other}) == other
    assert repository(WORKFLOW | NOWHERE) == ""
    assert repository(WORKFLOW) == URL
    with pytest.raises(ValueError, match="is like https://github.com/OWNER/NAME: got other/book"):
        repository({"MINIVIT_REPOSITORY": "other/book"})
