"""Every page as a reader's browser sees it: light and dark, on a phone and on a desk."""

import re
from collections.abc import Iterator
from itertools import product

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from book.tools.address import SITE
from tests.browser.conftest import Visit, open_page

CLAIMS = ("H01", "L21", "V32")  # of the claims' pages, which one template makes
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    # 404.html needs neither theme nor script.
    if "_static" not in path.parts and path.name != "404.html"
    if path.parent.name != "claims" or path.stem in CLAIMS
)
VIEWS = list(product(PAGES, ("light", "dark"), (390, 1280)))
AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: "-".join(map(str, view)))
def visit(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Visit]:
    name, theme, width = request.param
    visit = open_page(browser, site, name, theme, width)
    yield visit
    visit.page.close()


def test_asks_no_other_host_has_its_theme_and_fits(visit: Visit, request: pytest.FixtureRequest):
    assert visit.requests, "the page itself was asked for"
    visit.check()
    _, theme, width = request.node.callspec.params["visit"]
    assert visit.page.evaluate("document.documentElement.dataset.theme") == theme
    wide = visit.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{wide - width} pixels too wide"


def test_formulas_are_set_in_their_font_and_fit(visit: Visit):
    found = visit.page.evaluate("""() => {
        const article = document.querySelector('article, .bd-search-container').cloneNode(true);
        article.querySelectorAll('pre, code, script, math').forEach(e => e.remove());
        const wide = (e) => e.getBoundingClientRect().right > e.closest('.math, p, td, li, dd')
            .getBoundingClientRect().right + 1;
        return {
            formulas: document.querySelectorAll('.math').length,
            wide: [...document.querySelectorAll('span.math math')].filter(wide)
                .map(e => e.textContent),
            font: [...document.fonts].some(f => f.family == 'Formulas' && f.status == 'loaded'),
            raw: article.textContent.match(/\\$[^$\\n]+\\$|\\\\[(\\[][^\\n]*|\\\\begin\\{/g) ?? [],
        }
    }""")
    assert found["raw"] == [] and found["wide"] == []
    assert found["font"] == bool(found["formulas"])


def test_axe_finds_nothing(visit: Visit):
    found = [
        f"{violation['id']}: {' '.join(node['target'])}: {node['failureSummary']}"
        for violation in Axe().run(visit.page, options=AXE).response["violations"]
        for node in violation["nodes"]
    ]
    assert found == [], "\n\n".join(found)


def test_slider_of_frames_answers_to_the_keyboard(browser: Browser, site: str):
    pages = [name for name in PAGES if 'class="frames"' in (SITE / name).read_text("utf-8")]
    assert pages, "at least one page has a slider of frames"
    for name in pages:
        page = open_page(browser, site, name).page
        page.evaluate("document.querySelectorAll('.answer').forEach((box) => (box.open = true))")
        for figure in page.locator("figure.frames").all():
            slider = figure.locator("input[type=range]")
            seen = []
            for key in ("Home", "ArrowRight", "End"):
                slider.press(key)
                shown = [image for image in figure.locator("img").all() if image.is_visible()]
                assert len(shown) == 1, f"{name}: one frame is visible at a time"
                words = slider.get_attribute("aria-valuetext")
                assert figure.locator("output").inner_text() == words
                seen.append((words, shown[0].get_attribute("src"), shown[0].get_attribute("alt")))
            assert all(a != b for a, b in zip(seen[0], seen[1], strict=True)), seen
            assert len({words for words, *_ in seen}) >= 2
        page.close()


def test_a_bet_is_settled_and_counted_once_its_verdict_is_open(browser: Browser, site: str):
    page = open_page(browser, site, "book/02_attention.html").page
    box, tally = page.locator("[data-claim=V20]"), page.locator("section > [role=status]")
    box.locator("button").nth(1).click()
    assert box.locator(".right").count() == 0 and tally.inner_text() == ""
    page.locator("details.answer:has(#verdict-V20) > summary").click()
    expect(box.locator(".right button")).to_have_attribute("aria-pressed", "true")
    expect(tally).to_have_text("Your predictions: 1 of 1 right.")
    page.close()


def test_search_finds_without_a_network(browser: Browser, site: str):
    visit = open_page(browser, site, "search.html?q=softmax", "light", 390)
    visit.page.locator("#search-results li a").first.wait_for(timeout=10_000)
    links = visit.page.locator("#search-results li a").all()
    assert any("02_attention" in link.get_attribute("href") for link in links)
    field = visit.page.locator(".bd-search-container input")
    for words in ("refuted", "which claims are wrong"):
        field.fill(words)  # and no more: pages are listed as one types
        first = visit.page.locator("#search-results li a").first
        expect(first).to_have_attribute("href", re.compile("^book/ledger.html"))
    field.fill("residual connection")
    numbers = visit.page.locator("#search-results li a").evaluate_all(
        r"all => all.map(e => /^book.(\d\d)_[^#]*$/.exec(e.getAttribute('href'))?.[1]).filter(Boolean)"
    )
    assert len(numbers) > 3 and numbers == sorted(numbers), "chapters as they come in the book"
    icon, box = visit.page.locator(".bd-search-container svg.icon"), field.bounding_box()
    assert icon.bounding_box()["x"] + icon.bounding_box()["width"] <= box["x"] + 1
    visit.close()


def test_a_figure_is_saved_under_its_name_and_its_citation_copied(browser: Browser, site: str):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(site + "book/02_attention.html")
    figure = page.locator("figure:has(> figcaption .take)").first
    for link in figure.locator(".take a[download]").all():
        with page.expect_download() as event:
            link.click()
        kind = link.inner_text().lower()
        assert event.value.suggested_filename == f"{figure.get_attribute('id')}.{kind}"
    page.evaluate("navigator.clipboard.writeText('something else')")
    figure.locator(".take button").click()
    expect(figure.locator(".take button")).to_have_text("citation copied")
    number = figure.locator(".caption-number").inner_text().removeprefix("Fig. ").strip()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"Figure {number} of “") and copied.endswith("CC BY 4.0.")
    context.close()
