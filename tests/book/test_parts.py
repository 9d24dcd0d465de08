"""The drawings of chapters that answer: each has its script, its still picture and one chapter."""

import re
from collections import Counter

import pytest
from PIL import Image

from book.tools.notebooks import cells
from book.tools.stills import PARTS, STATIC, STILLS
from course.claims.ledger import chapters

PART = re.compile(
    r'<div class="live-part" data-part="(\w+)">\n\n'
    r"\S.{20,}\n\n"  # what to drag, and what is seen then
    r"!\[([^\]]{40,})\]\(_static/stills/(\w+)\.webp\)\n\n"
    r'<p class="live-part-still">.{20,}</p>\n\n</div>'
)


def shown():
    """Part and still picture, by every chapter that has one."""
    for path in chapters():
        for cell in cells(path):
            if cell.cell_type == "markdown" and "live-part" in cell.source:
                part, _, still = PART.fullmatch(cell.source).groups()
                yield part, still


def test_every_part_stands_in_one_chapter_around_its_own_still_picture():
    found = list(shown())
    assert all(part == still for part, still in found)
    assert Counter(part for part, _ in found) == Counter(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_light_says_what_it_is_and_asks_nothing_of_other_sites(part):
    file = STILLS / f"{part}.webp"
    with Image.open(file) as picture:
        assert 600 <= picture.width <= 720
    assert file.stat().st_size < 100_000
    script = (STATIC / f"live/parts/{part}.js").read_text(encoding="utf-8")
    assert f"minivitParts ??= {{}}).{part} = " in script
    assert re.search(r"title\b", script) and re.search(r"\bcompute: {", script)
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|localStorage", script)
