"""The drawings: files that a teacher can edit, and that can be read on a phone and aloud."""

import re
from xml.etree import ElementTree

import pytest

from book.tools.address import ROOT

FOLDER = ROOT / "book/_static/drawings"
SVG = "{http://www.w3.org/2000/svg}"
WIDTH = 720  # of every drawing, in its own pixels
SMALLEST = 18  # of a letter there: 8 where the drawing is 320 pixels wide
DRAWINGS = sorted(FOLDER.glob("*.svg"))


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
    used = {name for names in re.findall(r'class="([^"]+)"', text) for name in names.split()}
    assert used <= set(re.findall(r"\.([a-z]+)", text.partition("</style>")[0]))
