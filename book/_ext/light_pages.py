"""Makes the built pages light: they load what they use, and know their images' sizes.

The theme brings Font Awesome whole, for some fifteen icons, which are drawn into the pages instead.
"""

import base64
import re
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pydata_sphinx_theme
from PIL import Image
from sphinx.application import Sphinx

from book._ext.dark import dark, encoded_layer, is_chart
from book._ext.figures import STORED, form
from book._ext.pages import when_built

STATIC = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
SEARCH = ("searchtools.js", "language_data.js", "searchindex.js")  # only the search page searches
UNUSED = ("scripts/fontawesome.js*", "vendor/*/webfonts/*", "**/*.map", "**/*.[mp]o", "stills/*")
HEAVY = 100_000  # bytes of a PNG from which on its page shows it with less than all its detail
FRAMES = "querySelectorAll(&#x27;img&#x27;)"  # which a slider shows one of
DRAWN = re.compile("[0-9a-f]{64}")  # the name of what a notebook drew
PLAIN = re.compile(r'<span class="(?:n|nn|nx|p|pm|w)">([^<]*)</span>')  # has the colour of all code
KEPT = r"(?s)(<(pre|code|script|style|textarea)\b.*?</\2>)"
BLANK = re.compile(KEPT + r"|\s*<!--[^\[].*?-->|\n\s+")
APART = re.compile(KEPT + r"|(?<=\d) (?=[%×])|(?<=×) (?=\d)")  # what no line should end between
PRINTED = re.compile(r'(?s)<div id="jb-print-docs-body".*?(?=<div id="searchbox">)')
CONTENTS = re.compile(r'(?s)<nav class="bd-links.*?</nav>')
NO_STYLE = re.compile(r' class="(?:toctree-l\d|reference internal)"')
VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')
ICON = re.compile(
    r'<(i|span) class="((?:[\w-]+ +)*(?:fa-solid|fas|fab) +fa-([\w-]+)[^"]*)"([^>]*)></\1>'
)
SCRIPT = re.compile(r'\s*<script[^>]*\bsrc="([^"?]*)[^"]*"[^>]*></script>')
ICON_RULES = re.compile(
    r"@font-face\{[^}]*Font Awesome[^}]*\}|(?:\.fa[srb]?-[\w-]+:before,?)+\{[^}]*\}"
)


def lighten(html: str, page: Path) -> str:
    """A page without what it does not use, with its images' sizes; a light page stays as it is."""
    unused = ["fontawesome.js", *(() if page.name == "search.html" else SEARCH)]
    html = SCRIPT.sub(lambda tag: "" if tag[1].endswith(tuple(unused)) else tag[0], html)
    # Sphinx, docutils and the theme each write one.
    before, viewport, after = html.partition('<meta name="viewport"')
    html = before + viewport + VIEWPORT.sub("", after)
    html = ICON.sub(lambda tag: icon(tag[3], tag[2], tag[4]), html)
    # A fold in the contents is an arrow alone, with nothing to read aloud.
    fold = '<span class="toctree-toggle"'
    html = html.replace(f"<summary>{fold}", f'<summary aria-label="Pages below">{fold}')
    html = html.replace(' aria-label="Toggle hidden content"', "")  # a fold of code has words
    html = html.replace(FRAMES, FRAMES.replace("img", "img:not(.only-dark)"))
    html = PRINTED.sub("", html)  # a second title and list of contents, which paper need not have
    html = BLANK.sub(lambda found: found[1] or "\n", PLAIN.sub(r"\1", html))
    html = CONTENTS.sub(lambda contents: NO_STYLE.sub("", contents[0]), html)
    head, article, rest = html.partition("<article")
    spaced = APART.sub(lambda found: found[1] or "\xa0", rest)
    return head + article + re.sub(r"<img\b[^>]*>", picture(page), spaced)


@cache
def icon(name: str, classes: str, attributes: str = "") -> str:
    """An icon of the theme, drawn into the page."""
    shape = rf"""["{{,]{name}"?:\[(\d+),(\d+),\[[^]]*\],"\w+","([^"]+)"\]"""
    match = re.search(shape, (STATIC / "scripts/fontawesome.js").read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"the theme has no icon {name!r}")
    width, height, path = match.groups()
    kept = " ".join(word for word in classes.split() if word not in ("fa-solid", "fas", "fab"))
    mode = re.search(r' data-mode="\w+"', attributes)
    return (
        f'<svg class="icon {kept}"{mode[0] if mode else ""} viewBox="0 0 {width} {height}" '
        f'aria-hidden="true"><path d="{path}"/></svg>'
    )


def picture(page: Path) -> Callable[[re.Match], str]:
    """What becomes of an image's tag: a size, the narrow form for phones where there is one, and
    loading when it is needed, but for the first, which may stand on the first screen.
    """
    first = True

    def change(tag: re.Match) -> str:
        nonlocal first
        wait, first = "" if first and "lazy" not in tag[0] else ' loading="lazy"', False
        if "width=" in tag[0]:
            return tag[0]
        attributes = re.sub(' (width|height|loading)="[^"]*"', "", tag[0].removeprefix("<img"))
        source = re.search(r'\bsrc="([^"]+)"', tag[0])[1]
        if source.startswith("data:"):  # a frame of a slider, fetched when it is shown
            stored = base64.b64decode(source.partition(",")[2])
            file = page.with_name(f"{page.stem}-{zlib.crc32(stored):08x}.webp")
            file.write_bytes(stored)
            attributes = attributes.replace(source, file.name)
        else:
            file = page.parent / source
        if file.suffix == ".png":
            lossless = file.stat().st_size <= HEAVY
            with Image.open(file) as image:
                image.save(file.with_suffix(".webp"), quality=88, lossless=lossless)
            attributes = attributes.replace(file.name, f"{file.stem}.webp")
        image = f"<img {size(file)}{wait}{attributes}"
        narrow = form(file, "narrow")
        if narrow.exists() and page.stem != "index":  # which has the wide form
            image = (
                f'<picture><source media="(max-width: 40rem)" srcset="'
                f'{source.replace(file.name, narrow.name)}" {size(narrow)}>{image}</picture>'
            )
        if file.suffix == ".svg":
            return image
        if not layered(file):
            return image.replace("<img ", "<img data-chart ")
        if file.suffix == ".png" and not DRAWN.fullmatch(file.stem):
            return image
        layer = image.replace(".webp", "-dark.webp").replace(' hidden style="display:none"', "")
        layer = re.sub(r' alt="[^"]*"', ' alt=""', layer)
        lazy = "" if wait else ' loading="lazy"'
        layer = re.sub("<img (?!.*class)", '<img class="" ', layer)
        layer = layer.replace('class="', f'aria-hidden="true"{lazy} class="only-dark ')
        return f'<span class="layers">{image}{layer}</span>'

    return change


@cache
def layered(file: Path) -> bool:
    """Whether a dark page lays a layer over an image, as over all but charts; writes its forms."""
    if file.parent.match(STORED):
        return form(file, "dark").exists()
    for one in filter(Path.exists, (file, form(file, "narrow"))):
        with Image.open(one) as drawn:
            if one == file and is_chart(drawn):
                return False
            form(one, "dark").write_bytes(encoded_layer(dark(drawn)))
    return True


def size(file: Path) -> str:
    """An image's width and height, in pixels, as a tag has them."""
    if file.suffix == ".svg":
        return re.search(r'width="\d+" height="\d+"', file.read_text(encoding="utf-8"))[0]
    with Image.open(file) as image:
        return f'width="{image.width}" height="{image.height}"'


def finish(app: Sphinx) -> None:
    site = Path(app.outdir)
    for page in site.rglob("*.html"):
        if "_static" not in page.relative_to(site).parts:
            page.write_text(lighten(page.read_text("utf-8"), page), "utf-8")
    for pattern in UNUSED:
        for file in (site / "_static").glob(pattern):
            file.unlink()
    for sheet in (site / "_static/styles").glob("*.css"):
        sheet.write_text(ICON_RULES.sub("", sheet.read_text("utf-8")), "utf-8")


def setup(app: Sphinx) -> None:
    when_built(app, finish, priority=900)  # after the others
