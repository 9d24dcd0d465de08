"""The drawings: files that a teacher can edit, and that can be read on a phone and aloud.

Those that answer have each its script, its still picture and one chapter, the training two.
"""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from PIL import Image

from book.tools.address import ROOT
from book.tools.notebooks import cells
from book.tools.stills import PARTS, STATIC, STILLS
from course.claims.ledger import chapters

FOLDER = ROOT / "book/_static/drawings"
SVG = "{http://www.w3.org/2000/svg}"
WIDTH = 720  # of every drawing, in its own pixels
SMALLEST = 18  # of a letter there: 8 where the drawing is 320 pixels wide
DRAWINGS = sorted(FOLDER.glob("*.svg"))
PART = re.compile(
    r'<div class="live-part" data-part="(\w+)">\n\n(?:<a id="drawing-\w+"></a>\n\n)?'
    r"\S.{20,}\n\n"  # what to drag, and what is seen then
    r"!\[([^\]]{40,})\]\(_static/stills/(\w+)\.webp\)\n\n"
    r'<p class="live-part-still">.{20,}</p>\n\n</div>'
)


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_can_be_read_small_and_aloud_and_stands_alone(path):
    text = path.read_text(encoding="utf-8")
    drawing = ElementTree.fromstring(text)
    assert len(text.encode()) < 12_000
    assert drawing.get("viewBox").split()[:3] == ["0", "0", str(WIDTH)]
    assert len(drawing.findtext(f"{SVG}title")) > 20 and len(drawing.findtext(f"{SVG}desc")) > 100
    sizes = re.findall(r"\bfont(?:-size)?[:=][^;\"]*?\"?([\d.]+)", text)
    assert sizes and min(map(float, sizes)) >= SMALLEST
    tags = {element.tag for element in drawing.iter()}
    assert not tags & {f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject"}
    links = [value for element in drawing.iter() for key, value in element.items() if "href" in key]
    assert all(link.startswith("#") for link in links)
    ground = drawing.find(f"{SVG}rect").attrib
    assert (ground["fill"], ground["width"]) == ("#fff", str(WIDTH))
    assert ground["height"] == drawing.get("viewBox").split()[3]


def test_every_part_stands_around_its_own_still_picture_and_one_opens_its_chapter():
    every = [["live-part" in cell.source and cell.source for cell in cells(p)] for p in chapters()]
    assert all(sources[1] for sources in every if any(sources)), "it comes before any other figure"
    found = [PART.fullmatch(source).groups() for sources in every for source in sources if source]
    assert all(part == still for part, _, still in found)
    assert Counter(part for part, *_ in found) == Counter([*PARTS, "learn"])


def test_a_part_is_light_and_asks_nothing_of_other_sites():
    for part in PARTS:
        with Image.open(STILLS / f"{part}.webp") as picture:
            assert 600 <= picture.width <= 720
        assert (STILLS / f"{part}.webp").stat().st_size < 100_000
        script = (STATIC / f"live/parts/{part}.js").read_text(encoding="utf-8")
        assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|localStorage", script)
