"""The type of the pages, the same on every system: a sheet that holds what they use of each font,
so that text is never set in another one first, and nothing moves.
"""

import base64
import io
from collections.abc import Iterable
from pathlib import Path

import font_source_sans_pro as sans
import font_source_serif_pro as serif
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

from book._ext.pages import when_built

FACES = {  # what a sheet says of each; letters as large as Arial's, which may stand beside them
    sans.SourceSansPro: "font-family: Book Sans; size-adjust: 106%",
    sans.SourceSansProSemibold: "font-family: Book Sans; size-adjust: 106%; font-weight: 600 900",
    sans.SourceSansProIt: "font-family: Book Sans; size-adjust: 106%; font-style: italic",
    serif.SourceSerifProSemibold: "font-family: Book Serif; font-weight: 400 900",
}
LEGAL = [0, 13, 14]  # names that stay: the licence reserves the font's own for the whole font


def subset(font: TTFont, characters: Iterable[str], *features: str) -> bytes:
    """A font as WOFF2, with these characters alone, as far as it has them."""
    options = Options(layout_features=list(features), hinting=False, name_IDs=LEGAL)
    subsetter, file = Subsetter(options), io.BytesIO()
    subsetter.populate(unicodes=map(ord, characters))
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(file)
    return file.getvalue()


def write(app: Sphinx) -> None:
    site, shown = Path(app.outdir), set[str]()
    for page in site.rglob("*.html"):
        shown |= set(page.read_text(encoding="utf-8"))
    licences = (Path(font.__file__).parent / "files/LICENSE.txt" for font in (sans, serif))
    sheet = "".join(f"/* {path.read_text(encoding='utf-8')} */\n" for path in licences)
    for path, style in FACES.items():
        data = base64.b64encode(subset(TTFont(path), shown, "kern", "liga")).decode()
        sheet += f"@font-face {{ {style}; src: url(data:font/woff2;base64,{data}); }}\n"
    (site / "_static/fonts.css").write_text(sheet, encoding="utf-8")


def setup(app: Sphinx) -> None:
    when_built(app, write)
