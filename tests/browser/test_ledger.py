"""The ledger as a reader uses it: by hand, by keyboard, on a phone, without scripts, on paper."""

import re
from itertools import product

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import MOVED, processor

LEDGER = "book/ledger.html"
CHAPTER = "book/13_what_layernorm_forgets.html"
CARD = "details.verdict[data-word]"
SECONDS = 1.0  # of a processor: 0.5 on a core of its own, which tests side by side do not have


@pytest.fixture
def page(opened) -> Page:
    return opened(LEDGER)


def shown(page: Page) -> list[dict]:
    """The cards that can be seen, each with what it says of itself."""
    return page.locator(f"{CARD}:visible").evaluate_all("all => all.map(e => ({...e.dataset}))")


def counted(page: Page) -> int:
    return int(re.match(r"\d+", page.locator(".ledger-filter output").inner_text())[0])


def test_all_refutations_and_opposites_are_one_tap_away_and_open_by_keyboard(page: Page):
    before = len(shown(page))
    page.get_by_label("Find").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "All refutations and opposites"
    page.keyboard.press("Enter")
    words = {card["word"] for card in shown(page)}
    assert words and words <= {"refuted", "the opposite was seen here"}
    assert counted(page) == len(shown(page)) < before
    first = page.locator(f"{CARD}:visible").first
    first.locator("> summary").focus()
    page.keyboard.press("Enter")
    assert first.evaluate("e => e.open") and first.locator("dl").is_visible()
    page.keyboard.press("Enter")
    assert not first.evaluate("e => e.open")
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("location.search == ''")
    assert counted(page) == len(shown(page)) == before


def test_a_menu_shows_as_many_as_it_promises_and_marks_are_filters_too(page: Page):
    page.get_by_text("More filters", exact=True).click()
    for name in ("part", "chapter", "source", "basis", "scale"):
        option = page.locator(f"select[name={name}] option:nth-child(3)")
        value, promised = option.get_attribute("value"), option.inner_text()
        page.locator(f"select[name={name}]").select_option(value)
        assert {card[name] for card in shown(page)} == {value}
        assert f"({counted(page)})" in promised and counted(page) == len(shown(page))
        chips = page.locator(".topic-words li:visible span").all_inner_texts()
        assert sum(map(int, chips)) == counted(page), "the topics' counts follow"
        words = page.locator(".ledger-filter fieldset [data-count]").all_inner_texts()
        assert sum(map(int, words)) == counted(page), "the words' counts follow"
        page.locator(f"select[name={name}]").select_option("")
    for name in ("amended", "inferred"):
        page.locator(f"input[name={name}]").check()
        assert {card[name] for card in shown(page)} == {"yes"}
        page.locator(f"input[name={name}]").uncheck()


def test_the_address_keeps_what_is_asked_and_back_undoes_it(page: Page, browser: Browser):
    page.get_by_label("Find").press_sequentially("layernorm")
    found = counted(page)
    assert 0 < found < 100 and "text=layernorm" in page.url
    page.locator("input[name=word][value=holds]").check()
    fewer, address = counted(page), page.url
    assert 0 < fewer < found
    page.go_back()
    assert counted(page) == found and page.get_by_label("Find").input_value() == "layernorm"
    page.go_back()
    assert page.url.endswith(LEDGER) and counted(page) > found
    again = browser.new_page()
    again.goto(address)
    assert counted(again) == len(shown(again)) == fewer
    again.close()


@pytest.mark.parametrize("query", ["?utm.x=1", "?a[b]=1", "?=", "?word=%22%5D&word=refuted"])
def test_an_odd_address_filters_by_what_it_names_and_nothing_moves(browser, site, query: str):
    page, errors = browser.new_page(viewport={"width": 390, "height": 844}), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.add_init_script(MOVED)
    page.goto(f"{site}{LEDGER}{query}#R65", wait_until="networkidle")
    assert errors == [] and page.locator("#R65").evaluate("e => e.open")
    assert counted(page) < 60 if "refuted" in query else counted(page) > 200
    page.goto(site + LEDGER, wait_until="networkidle")
    assert page.evaluate("moved") < 0.1
    page.close()


def test_a_permalink_opens_its_card_even_when_a_filter_would_hide_it(opened):
    for query in ("", "?word=open"):
        card = opened(f"{LEDGER}{query}#R65").locator("#R65")
        assert card.evaluate("e => e.open") and card.locator("dl").is_visible()
        assert 0 <= card.bounding_box()["y"] < 300


def test_an_address_opens_a_chapter_s_card_and_the_folds_that_it_lies_in(opened):
    page = opened("book/01_images_as_sequences.html#verdict-R06")
    for name in ("R06", "V17"):
        page.evaluate("name => (location.hash = `verdict-${name}`)", name)
        card = page.locator(f"#verdict-{name}[open]")
        card.locator("dl").wait_for()
        assert 0 <= card.bounding_box()["y"] < 300


def test_without_scripts_everything_is_there(without_scripts: Page, site: str):
    page = without_scripts
    page.goto(f"{site}{LEDGER}#R65")
    assert not page.locator(".ledger-filter").is_visible()
    assert page.locator(f"{CARD}:visible").count() == page.locator(CARD).count() > 200
    assert page.locator("#R65 dl").is_visible(), "a permalink shows its card"
    assert not page.locator("#R41 dl").is_visible()
    page.locator("#R41 > summary").click()
    assert page.locator("#R41 dl").is_visible()


def test_a_claim_s_page_is_whole_without_scripts_on_a_phone_and_on_paper(without_scripts, site):
    without_scripts.set_viewport_size({"width": 390, "height": 900})
    for name, media in product(("R01", "V32"), ("screen", "print")):  # R01 names long addresses
        without_scripts.goto(f"{site}book/claims/{name}.html")
        without_scripts.emulate_media(media=media)
        parts = without_scripts.locator("article :is(h1, h2, p, li, dt, dd, code, img)")
        assert parts.count() > 30 and all(part.is_visible() for part in parts.all())
        assert without_scripts.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_line_is_short_in_a_chapter_and_says_the_whole_claim_in_the_ledger_and_all_fits(opened):
    for name, width in product((CHAPTER, LEDGER), (1280, 390)):
        page = opened(name, "light", width)  # what is only implied says so, on a line of its own
        summaries = page.locator("details.verdict > summary:not(:has(.verdict-mark))")
        heights = summaries.evaluate_all("all => all.map(e => e.getBoundingClientRect().height)")
        assert heights and (name == LEDGER or max(heights) < (52 if width == 1280 else 80))
        cut = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
        claims = page.locator("details.verdict > summary .verdict-claim")
        assert claims.count() and (name == CHAPTER or claims.evaluate_all(cut) == [])
    page = opened(f"{LEDGER}#R24", "light", 390)
    page.get_by_text("More filters", exact=True).click()
    for part in page.locator(".ledger-filter :visible, #R24 :visible").all():
        box = part.bounding_box()
        assert box is None or box["x"] + box["width"] <= 390, part.evaluate("e => e.outerHTML")


def test_on_paper_cards_are_open(opened):
    page = opened(CHAPTER)
    page.emulate_media(media="print")
    card = page.locator("details.verdict").first
    assert card.locator("dl").is_visible(), "by style alone"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert card.evaluate("e => e.open"), "by script, where a browser does not know the style"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not card.evaluate("e => e.open")


def test_the_page_opens_in_under_a_second(browser: Browser, site: str):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    spent = processor(page)
    page.goto(site + LEDGER, wait_until="load")
    page.evaluate("new Promise(requestAnimationFrame)")
    assert 0 < spent() < SECONDS
    page.close()
