"""How a claim is cited: its permalink and its BibTeX entry."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from course.claims.rows import BOOK

CITATION = BOOK.parent / "CITATION.cff"


@dataclass(frozen=True)
class Build:
    """What was built, and where it will be found; empty texts where that is not known."""

    commit: str = ""  # a + at its end: of files with changes
    date: str = ""  # of the commit
    site: str = ""  # the address, with a slash at its end


def bibtex(claim: dict[str, Any], build: Build) -> str:
    """The BibTeX entry of a claim, as ``ledger`` gives it."""
    book = citation()
    fields = {
        "author": " and ".join(f"{{{_tex(author['name'])}}}" for author in book["authors"]),
        "title": f"Claim {{{claim['id']}}}, {_tex(claim['word'])}. In: {{{_tex(book['title'])}}}",
        "year": build.date[:4],
        "version": book["version"] + (f", commit {build.commit}" if build.commit else ""),
        "url": claim["url"] if build.site else "",
        "note": _tex(claim["statement"]),
    }
    lines = "".join(f"  {name} = {{{text}}},\n" for name, text in fields.items() if text)
    return f"@misc{{minivit-book-{claim['id']},\n{lines}}}\n"


def _tex(text: str) -> str:
    """Text in which LaTeX finds no command."""
    names = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum"}
    names |= {"{": "textbraceleft", "}": "textbraceright"}
    commands = {ord(sign): f"\\{name} " for sign, name in names.items()}
    return text.translate(commands | {ord(sign): f"\\{sign}" for sign in "&%$#_"})


def address(name: str, build: Build) -> str:
    """The permalink of a claim: from the site's root where its address is not known."""
    return f"{build.site}book/claims/{name}.html"


@cache
def citation() -> dict[str, Any]:
    """How the book is cited, from ``CITATION.cff``."""
    return yaml.load(CITATION.read_text(encoding="utf-8"), yaml.CSafeLoader)
