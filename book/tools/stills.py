"""Takes the picture that stands in for each part of a chapter that answers: its first state.

    python -m book.tools.stills [PART ...]        default: all parts

For readers without scripts, in notebooks and in print. Needs Chromium and Playwright, which
`make test-site` has. Run it after a change of what a part shows at first; look at what it wrote.
"""

import argparse
import io
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pydata_sphinx_theme
from PIL import Image
from playwright.sync_api import Locator, Page

from book._ext import live
from book.tools import chromium
from book.tools.address import ROOT

STATIC = ROOT / "book/_static"
STILLS = STATIC / "stills"
SCRIPTS = {path.stem for path in (STATIC / "live/parts").glob("*.js")}
PARTS = sorted(SCRIPTS - {"base", "drawing", "numbers", "parts"})
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/styles"
WIDTH = 688  # pixels of the book's column
PAGE = """<!doctype html><html lang="en" data-theme="light" data-mode="light"><head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>parts</title>
<link rel="stylesheet" href="_static/theme/pydata-sphinx-theme.css">
<link rel="stylesheet" href="_static/book.css">
<link rel="stylesheet" href="_static/live/parts/parts.css"></head>
<body><main class="bd-article" style="width: min(100%, {width}px); margin: auto; padding: 1rem">
{parts}</main>
<script defer src="_static/live/parts/parts.js"></script></body></html>
"""


def write_page(folder: Path, parts: list[str]) -> Path:
    """A page with these parts and all that they load, in a folder of its own."""
    shutil.copytree(STATIC, folder / "_static")
    shutil.copytree(THEME, folder / "_static/theme")
    live.write(SimpleNamespace(outdir=folder))  # as when the site is built
    divs = (
        f'<div class="live-part" data-part="{name}"><p><img alt=""></p></div>' for name in parts
    )
    page = folder / "parts.html"
    page.write_text(PAGE.format(width=WIDTH, parts="".join(divs)), encoding="utf-8")
    return page


def ready(page: Page, part: str) -> Locator:
    page.locator(f"[data-part={part}]").scroll_into_view_if_needed()
    page.locator(f"[data-part={part}][data-ready]").wait_for(timeout=60_000)
    page.locator(f"[data-part={part}] [aria-busy=true]").wait_for(state="detached", timeout=60_000)
    return page.locator(f"[data-part={part}] .part")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS)
    parts = parser.parse_args().parts
    STILLS.mkdir(exist_ok=True)
    with TemporaryDirectory() as scratch, chromium.browser() as browser:
        url = write_page(Path(scratch), parts).as_uri()
        page = browser.new_page(viewport={"width": WIDTH + 40, "height": 900})
        page.goto(url)
        for part in parts:
            png = ready(page, part).screenshot()
            Image.open(io.BytesIO(png)).save(STILLS / f"{part}.webp", "WEBP", quality=82, method=6)


if __name__ == "__main__":
    main()
