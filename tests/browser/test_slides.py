"""Every slide is whole on a screen of 1280 by 720, with type that can be read, and without a network."""

import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from book.tools import slides, weeks

ARCHIVE = Path(sys.prefix) / slides.REVEAL.rpartition("/")[2]
SMALLEST = 16  # pixels of type in a slide, but for what models and formulas write
# Of the slide that is shown: what reaches over its edge, is too small, or is no image.
FAULTS = """([smallest]) => {
  const slide = document.querySelector("section.present"), faults = [];
  const { right, bottom } = slide.getBoundingClientRect();
  for (const node of slide.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (!box.width || node.closest("aside, math, .live, .live-part")) continue;
    if (box.right > right + 1 || box.bottom > bottom + 1) faults.push(`${node.tagName} is cut off`);
    const words = [...node.childNodes].some((one) => one.nodeType == 3 && one.data.trim());
    if (words && parseFloat(getComputedStyle(node).fontSize) < smallest) faults.push(`${node.tagName} is small`);
    if (node.tagName == "IMG" && !node.naturalWidth) faults.push(`${node.src} is no image`);
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def folder(site, tmp_path_factory):
    """The decks, built from the site."""
    if not ARCHIVE.exists():
        pytest.skip("reveal.js has not been fetched: `make slides` does")
    out = tmp_path_factory.mktemp("slides")
    slides.build(out)
    return out


@pytest.mark.parametrize("deck", (*slides.DECKS, *weeks.NAMES))
def test_every_slide_is_whole_and_legible(browser, folder, deck):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    page.goto((folder / f"{deck}.html").as_uri())
    page.wait_for_selector("html[data-settled]", state="attached")
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate(f"Reveal.slide({number})")
        if page.locator("section.present .live").count():
            page.wait_for_selector("section.present .live[data-ready]", timeout=60_000)
        assert page.evaluate(FAULTS, [SMALLEST]) == [], f"slide {number + 1}"
    assert said == []
    page.close()


@pytest.mark.parametrize(
    ("deck", "what", "says"), [("part_2", ".live", ".live-say"), ("lecture", ".frames", "output")]
)
def test_a_model_answers_in_a_slide_and_a_slider_moves(browser, folder, deck, what, says):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto((folder / f"{deck}.html").as_uri())
    page.wait_for_selector("html[data-settled]", state="attached")
    page.evaluate("(what) => Reveal.slide([...document.querySelectorAll('.slides > section')]"
                  ".findIndex((slide) => slide.querySelector(what)))", what)  # fmt: skip
    shown = page.locator("section.present").locator(what)
    if what == ".live":
        page.wait_for_selector("section.present .live[data-ready]", timeout=60_000)
    where, before = page.evaluate("Reveal.getIndices().h"), shown.locator(says).inner_text()
    if what == ".live":
        shown.locator(".live-samples button").nth(2).click()
    else:
        shown.locator("input").press("ArrowRight")
    expect(shown.locator(says)).not_to_have_text(before, timeout=30_000)
    assert page.evaluate("Reveal.getIndices().h") == where, "the slide stays"
    page.close()
