"""A page of the site on paper."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from playwright.sync_api import Browser, BrowserContext
from pypdf import PdfReader

from book.tools.address import ROOT

LEFT_OUT = ("book/solutions", "book/api", "book/teaching/exam_marking")
HEIGHT = 842.88  # points of a sheet, A4 as Chromium has it
MARGIN = 51  # points, on each side
SCALE = 0.8  # type of 16 pixels becomes 9.6 points
SETTLE = Path(__file__).with_name("settle.js").read_text(encoding="utf-8")
LOOK = Path(__file__).with_name("look.css").read_text(encoding="utf-8")


@dataclass
class Printed:
    """What the book consists of: parts, which have no sheets of their own, and pages."""

    title: str
    address: str = ""
    file: PdfReader | None = None
    headings: list[tuple[str, str]] = field(default_factory=list)  # anchor and text
    first: int = 0  # the index of its first sheet in the book

    @property
    def sheets(self) -> int:
        """How many it has."""
        return len(self.file.pages) if self.file else 0


def entries() -> Iterator[tuple[str, str]]:
    """``("part", title)`` and ``("page", name)`` in order, without what is left out."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    yield "page", contents["root"]
    for part in contents["parts"]:
        if "caption" in part:
            yield "part", part["caption"]
        for chapter in part["chapters"]:
            for page in (chapter, *chapter.get("sections", [])):
                if not page["file"].startswith(LEFT_OUT):
                    yield "page", page["file"]


def printed(browser: Browser | BrowserContext, address: str) -> Printed:
    """A page, as Chromium prints it when all that belongs on it is there."""
    tab = browser.new_page()
    tab.goto(address)
    tab.add_style_tag(content=LOOK)
    title, headings = tab.evaluate(SETTLE)
    margin = dict.fromkeys(("top", "bottom", "left", "right"), f"{MARGIN / 0.75}px")
    file = tab.pdf(format="A4", scale=SCALE, print_background=True, margin=margin)
    tab.close()
    return Printed(title, address, PdfReader(io.BytesIO(file)), headings)
