"""Builds the slides of ``book/teaching/slides``, which need no network then, and prints them."""

import re
import shutil
from pathlib import Path

from book.tools import chromium, npm, weeks
from book.tools.address import ROOT, SITE
from book.tools.slide_parts import filled
from course.claims.rows import BOOK

SOURCES = BOOK / "teaching/slides"
OUT = ROOT / "_build/slides"
DECKS = ("lecture", "part_1", "part_2", "part_3", "part_4", "part_5", "part_6")
REVEAL = "reveal.js-6.0.2"
SHA512 = "JYIg5D9aoxoaLeb84O+OvAwsKWdIavVgEDScxtYEXFCT6t6TQrhNtSgogcjdCpdLsWglhJn3zyE3fUOwiH5KEg=="
TAKEN = ("reset.css", "reveal.css", "reveal.js", "plugin/notes.js")
READER = "markdown-implicit_figures"  # an image alone in a paragraph gets no caption
COLOURS = re.compile(
    r'^(?::root|html:not\(\[data-theme="dark"\]\)) \{.*?^\}|^\.verdict-\w+ \{ --verdict: .*?\}',
    re.DOTALL | re.MULTILINE,
)


def page(text: str) -> str:
    import pypandoc

    template = f"--template={SOURCES}/template.html"
    options = [template, "--slide-level=2", "--mathml", "--columns=999"]
    return pypandoc.convert_text(text, "revealjs", READER, extra_args=options)


def build(out: Path = OUT) -> None:
    """Writes every deck, and what it needs, into a folder."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "figures").mkdir(parents=True)
    for name, file in npm.files_of(REVEAL, SHA512, TAKEN):
        (out / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        (out / "reveal" / name).write_bytes(file)
    for shared in (SITE / "_static/live", BOOK / "_static/stills"):
        shutil.copytree(shared, out / shared.name)
    colours = COLOURS.findall((BOOK / "_static/book.css").read_text(encoding="utf-8"))
    look = (SOURCES / "slides.css").read_text(encoding="utf-8")
    (out / "slides.css").write_text("\n".join([*colours, look]), encoding="utf-8")
    shutil.copy(SOURCES / "slides.js", out)
    for deck in (*DECKS, *weeks.NAMES):
        file = SOURCES / f"{deck}.md"
        text = weeks.deck(deck) if deck in weeks.NAMES else file.read_text(encoding="utf-8")
        (out / f"{deck}.html").write_text(page(filled(text, out / "figures")), encoding="utf-8")


if __name__ == "__main__":
    build()
    with chromium.browser() as browser:
        for deck in (*DECKS, *weeks.NAMES):
            with browser.new_page(viewport={"width": 1280, "height": 720}) as tab:
                tab.goto(f"{(OUT / deck).with_suffix('.html').resolve().as_uri()}?print-pdf")
                tab.wait_for_selector("html[data-settled]", state="attached", timeout=60_000)
                tab.pdf(path=OUT / f"{deck}.pdf", prefer_css_page_size=True, print_background=True)
    print(f"The slides are ready: open {OUT}/lecture.html, or one of its neighbours.")
