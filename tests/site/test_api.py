"""The pages about the package: everything public is there, and no page is a wall."""

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
PACKAGES = [
    path.parent.name
    for path in ROOT.glob("minivit/*/__init__.py")
    if "__all__" in path.read_text("utf-8")
]
HEAVIEST = 40_000  # bytes, compressed; on one page all would be a hundred thousand


def test_no_page_is_heavy():
    assert len(HTML) > 1
    assert max(len(gzip.compress(html.encode())) for html in HTML) < HEAVIEST


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_every_public_name_is_described(package: str):
    module = importlib.import_module(f"minivit.{package}".rstrip("."))
    names = [name for name in module.__all__ if not ismodule(getattr(module, name))]
    assert set(names) <= DESCRIBED
