"""The pages about the packages: everything public is there, once, and no page is a wall."""

import gzip
import importlib
import re
from inspect import ismodule

import pytest

from book.tools.address import ROOT, SITE

HTML = [path.read_text("utf-8") for path in SITE.glob("book/api/*.html")]
DESCRIBED = {
    name for html in HTML for name in re.findall(r'<dt class="sig[^"]*" id="[\w.]+\.(\w+)"', html)
}
LISTED = [
    name
    for path in ROOT.glob("book/api/*.md")
    for name in re.findall(r"automodule:: ([\w.]+)", path.read_text("utf-8"))
]
PACKAGES = [
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in [ROOT / "minivit/__init__.py", *ROOT.glob("vitlab/*/__init__.py")]
    if "__all__" in path.read_text("utf-8")
]
HEAVIEST = 40_000  # bytes, compressed; on one page all would be a hundred thousand


def test_no_page_is_heavy():
    assert len(HTML) > 1
    assert max(len(gzip.compress(html.encode())) for html in HTML) < HEAVIEST


def test_every_module_of_minivit_and_every_package_of_vitlab_is_listed_and_none_twice():
    modules = {f"minivit.{path.stem}" for path in ROOT.glob("minivit/*.py")} - {"minivit.__init__"}
    assert modules <= set(LISTED)
    rooms = {f"vitlab.{path.parent.name}" for path in ROOT.glob("vitlab/*/__init__.py")}
    assert rooms == {".".join(name.split(".")[:2]) for name in LISTED if "vitlab." in name}
    assert len(LISTED) == len(set(LISTED))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_described(package: str):
    module = importlib.import_module(package)
    names = [name for name in module.__all__ if not ismodule(getattr(module, name))]
    assert set(names) <= DESCRIBED
