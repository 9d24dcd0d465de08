"""Takes the picture that stands in for each part of a chapter that answers: its first state.

    python -m book.tools.stills [PART ...]        default: all parts

Needs Chromium and the built site. Run it after a change of what a part shows at first.
"""

import io
import sys

from PIL import Image

from book.tools import chromium
from book.tools.address import ROOT, SITE

STATIC = ROOT / "book/_static"
STILLS = STATIC / "stills"
SCRIPTS = {path.stem for path in (STATIC / "live/parts").glob("*.js")}
PARTS = sorted(SCRIPTS - {"base", "drawing", "numbers", "parts", "large"})  # that is fetched first


if __name__ == "__main__":
    pages = {path: path.read_text(encoding="utf-8") for path in SITE.glob("book/[0-9]*.html")}
    with chromium.browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1400}, color_scheme="light")
        for part in sys.argv[1:] or PARTS:
            div = f'data-part="{part}"'
            page.goto(next(path for path, html in pages.items() if div in html).as_uri())
            place = page.locator(f"[data-part={part}]")
            place.scroll_into_view_if_needed()
            page.locator(f"[data-part={part}][data-ready]").wait_for(timeout=60_000)
            place.locator("[aria-busy=true]").wait_for(state="detached", timeout=60_000)
            png = place.locator(".part").screenshot()
            Image.open(io.BytesIO(png)).save(STILLS / f"{part}.webp", "WEBP", quality=82, method=6)
