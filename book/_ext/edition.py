"""In an edition that leaves out pages, links to them become text, or lead to the whole book.

The edition's ``edition.json`` names the pages and labels; without it nothing changes.
"""

import json
from functools import cache
from itertools import groupby

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import docname_join
from sphinx.util.docutils import SphinxDirective

from book.tools.address import ROOT
from book.tools.edition.contents import number

FILE = ROOT / "edition.json"
KINDS = {"numref": "a figure", "eq": "an equation", "ref": "a section"}  # what a label names


@cache
def edition() -> dict:
    """The pages that are left out, with their titles, their labels, and where the whole book is."""
    if not FILE.exists():
        return {"left_out": {}, "labels": {}, "whole": ""}
    return json.loads(FILE.read_text(encoding="utf-8"))


def in_this_edition(page: str) -> bool:
    return page not in edition()["left_out"]


def address(page: str, here: str, there: str = "") -> str:
    """Where a page is: in this edition, ``here``; in the whole book, ``there``; or nowhere."""
    if in_this_edition(page):
        return here
    whole = edition()["whole"]
    return f"{whole.rstrip('/')}/{there or page + '.html'}" if whole else ""


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Node
) -> nodes.Node | None:
    """Text in place of a link to what is left out; Sphinx calls this for what it does not find."""
    target, titles = node["reftarget"], edition()["left_out"]
    if node["reftype"] == "doc":
        page = docname_join(node["refdoc"], target)
        text, anchor = titles.get(page), ""
    else:
        page = edition()["labels"].get(target, "")
        chapter = number(page)
        place = titles.get(page) if chapter is None else f"chapter {chapter}"
        text, anchor = f"{KINDS.get(node['reftype'], 'a place')} of {place}", f"#{target}"
    if page not in titles:
        return None
    if node.get("refexplicit"):
        text = shown.astext()
    if link := address(page, ""):
        return nodes.reference("", text, refuri=link + anchor, internal=False)
    return nodes.inline("", text, classes=["left-out"])


def listed(numbers: list[int]) -> str:
    """Chapters by their numbers in order: "chapters 3, 5 to 13 and 15"."""
    runs = groupby(enumerate(numbers), key=lambda item: item[1] - item[0])  # alike within a run
    spans = [[number for _, number in run] for _, run in runs]
    *first, last = (" to ".join(map(str, sorted({span[0], span[-1]}))) for span in spans)
    listing = f"{', '.join(first)} and {last}" if first else last
    return f"chapter{'s' * (len(numbers) > 1)} {listing}"


class LeftOut(SphinxDirective):
    """A sentence on what this edition leaves out, where it leaves out chapters; else nothing."""

    def run(self):
        pages = (page for page in edition()["left_out"] if "/solutions/" not in page)
        numbers = {number(page) for page in pages} - {None}
        if not numbers:
            return []
        text = (
            f"This book is a part of a larger one and leaves out {listed(sorted(numbers))}. "
            "Chapters, figures and claims keep the numbers that they have there, and the ledger "
            "lists all claims."
        )
        return [nodes.paragraph("", text)]


def setup(app: Sphinx) -> None:
    app.add_directive("left-out", LeftOut)
    app.connect("missing-reference", resolve)
