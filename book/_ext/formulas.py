"""Formulas: MathML, which pandoc makes of their TeX once the pages are built, and its font."""

import json
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from unicodedata import name, normalize

import pypandoc
import yaml
import ziamath
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math

from book._ext.fonts import subset
from book._ext.pages import when_built

KINDS = {"(": "InlineMath", "[": "DisplayMath"}
TEX = re.compile(  # as Sphinx writes it for MathJax, perhaps below an equation's number
    r'(?s)(<(?:span|div) class="math [^>]*>\s*(?:<span class="eqno">.*?</a></span>)?)'
    r"\\([([])(.*?)\\[)\]](?=</(?:span|div)>)"
)
MATHML = re.compile(r"(?s)<math.*?</math>")
TAGS = re.compile(r"(?s)<annotation.*?</annotation>|<[^>]*>")
MENDS = yaml.safe_load(Path(__file__).with_name("formulas.yml").read_text(encoding="utf-8"))
FONT = Path(ziamath.__file__).parent / "fonts/STIXTwoMath-Regular.ttf"
ITALICS = [c for c in map(chr, range(0x1D434, 0x1D71C)) if "MATHEMATICAL ITALIC" in name(c, "")]


def mathml(formulas: Sequence[tuple[str, str]]) -> list[str]:
    """Formulas, each inline ``(`` or displayed ``[`` and its TeX, as MathML, which has both."""
    tidy = [(KINDS[kind], " ".join(unescape(tex).split())) for kind, tex in formulas]
    maths = (f"Para [Math {kind} {json.dumps(tex, ensure_ascii=False)}]" for kind, tex in tidy)
    options = ["--mathml", "--wrap=none"]
    made = pypandoc.convert_text(f"[{','.join(maths)}]", "html", "native", extra_args=options)
    for mend in MENDS:
        made = re.sub(mend["find"], mend["put"], made)
    found = re.findall(r"(?s)<p>(.*?)</p>", made)
    for (_, tex), math in zip(tidy, found, strict=True):
        if not math.startswith("<math"):
            raise ValueError(f"a formula that pandoc cannot set: {tex}")
    return found


def write(app: Sphinx) -> None:
    """Sets the formulas of all pages, and writes as much of the font as they need."""
    site, shown = Path(app.outdir), {"√", "\N{PLANCK CONSTANT}"}  # the italic h
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    found = sorted({tex.group(2, 3) for html in pages.values() for tex in TEX.finditer(html)})
    known = dict(zip(found, mathml(found), strict=True))
    for path, html in pages.items():
        new = TEX.sub(lambda tex: tex[1] + known[tex[2], tex[3]], html)
        if new != html:
            path.write_text(new, encoding="utf-8")
        shown |= set(unescape(TAGS.sub("", "".join(MATHML.findall(new)))))
    shown |= {letter for letter in ITALICS if normalize("NFKC", letter) in shown}
    write_font(shown, site / "_static/math.woff2")


def write_font(shown: set[str], file: Path) -> None:
    """STIX Two Math with these characters alone."""
    font = TTFont(FONT)
    width = font["hmtx"]["uni221A"][0]
    for glyph in font.getGlyphOrder():  # Chromium leaves room for the widest root, of all heights
        if glyph.startswith("uni221A."):
            before, left = font["hmtx"][glyph]
            font["glyf"][glyph].coordinates.scale((width / before, 1))
            font["hmtx"][glyph] = width, round(left * width / before)
    file.write_bytes(subset(font, shown))


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (html_visit_math, None), (html_visit_displaymath, None))
    when_built(app, write)
