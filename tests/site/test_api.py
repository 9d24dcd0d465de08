"""The pages about the packages: everything public is there, once, and no page is a wall."""

import gzip
import importlib
import re

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
]
HEAVIEST = 40_000  # bytes, compressed; on one page all would be a hundred thousand


def test_no_page_is_heavy_and_every_module_and_package_is_listed_once():
    assert len(HTML) > 1
    assert max(len(gzip.compress(html.encode())) for html in HTML) < HEAVIEST
    modules = {f"minivit.{path.stem}" for path in ROOT.glob("minivit/*.py")} - {"minivit.__init__"}
    assert modules <= set(LISTED)
    assert set(PACKAGES) - {"minivit"} == {
        ".".join(n.split(".")[:2]) for n in LISTED if "vitlab." in n
    }
    assert len(LISTED) == len(set(LISTED))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_described(package: str):
    """Those that a package lists or shows, of what is defined in it."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [n for n in dir(module) if not n.startswith("_")])
    homes = {name: getattr(getattr(module, name), "__module__", "") for name in names}
    own = {name for name, home in homes.items() if f"{home}.".startswith(f"{package}.")}
    if package == "vitlab.commands":
        own = {"main"}  # the others are what the command line reads, and its help says
    assert own <= DESCRIBED
