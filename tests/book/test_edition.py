"""In an edition that leaves out chapters, links to them become text, or lead to the whole book."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from book._ext import edition

GONE = {
    "left_out": {"book/09_where": "Where attention looks", "book/part_2": "See, in one page"},
    "labels": {"fig-distances": "book/09_where", "looks": "book/part_2"},
    "whole": "",
}


@pytest.fixture(params=["", "https://owner.github.io/book/"])
def whole(request, monkeypatch):
    monkeypatch.setattr(edition, "edition", lambda: GONE | {"whole": request.param})
    return request.param


def resolved(kind, target, text="", page="book/02_attention"):
    node = {"reftype": kind, "reftarget": target, "refdoc": page, "refexplicit": bool(text)}
    return edition.resolve(None, SimpleNamespace(), node, nodes.literal("", text or target))


@pytest.mark.parametrize("kind, target, text, page, said, there", [
    ("doc", "09_where", "chapter 9", "book/02_attention", "chapter 9", "book/09_where.html"),
    ("doc", "../09_where", "", "book/teaching/course", "Where attention looks", "book/09_where.html"),
    ("doc", "/book/09_where", "", "index", "Where attention looks", "book/09_where.html"),
    ("numref", "fig-distances", "", "index", "a figure of chapter 9", "book/09_where.html#fig-distances"),
    ("ref", "looks", "", "index", "a section of See, in one page", "book/part_2.html#looks"),
])  # fmt: skip
def test_a_link_to_what_is_left_out(whole, kind, target, text, page, said, there):
    node = resolved(kind, target, text, page)
    assert node.astext() == said
    assert node.get("refuri", "") == (f"{whole}{there}" if whole else "")
    assert resolved("doc", "10_nowhere") is None, "broken in the whole book, too"
    assert resolved("numref", "fig-nowhere") is None


def test_without_the_file_of_an_edition_every_page_is_in_it_and_chapters_are_listed():
    assert not edition.FILE.exists()
    assert edition.in_this_edition("book/09_where")
    assert edition.address("book/09_where", "09_where.html") == "09_where.html"
    assert edition.listed([3]) == "chapter 3"
    assert edition.listed([3, 5]) == "chapters 3 and 5"
    assert edition.listed([3, 5, 6, 7, 15, 16]) == "chapters 3, 5 to 7 and 15 to 16"
