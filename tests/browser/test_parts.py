"""The drawings of chapters that answer, as readers use them: by hand, by keyboard, from a folder."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from book.tools.address import SITE
from tests.browser.conftest import open_page, processor, ready

FOUND = re.compile(r'<div class="live-part" data-part="(\w+)"')
PARTS = [(part, f"book/{page.name}") for page in sorted(SITE.glob("book/*.html"))
         for part in FOUND.findall(page.read_text("utf-8")) if part != "large"]  # fmt: skip
FOLLOWS = 0.2  # seconds from a step of the hand to the drawing: 0.1 on a core of its own
TOUCHED = "input[type=range], .part-pad, .part-box, .part-grid button"  # first of all


def begun(page: Page, part: str) -> Locator:
    root = ready(page.locator(f"[data-part={part}]"))
    settle(root)
    return root


@pytest.fixture
def root(browser: Browser, site: str, part: str) -> Iterator[Locator]:
    """A drawing that has begun, in its chapter on a dark phone."""
    visit = open_page(browser, site, dict(PARTS)[part], "dark", 390)
    yield begun(visit.page, part)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.close()


def first(root: Locator) -> Locator:
    """What the keyboard reaches first."""
    return root.locator("input[type=range], .part-point").locator("visible=true").first


def said(root: Locator) -> str:
    return root.locator(".part-say").inner_text()


def drawn(root: Locator) -> str:
    """All that its canvases show."""
    return root.evaluate("e => [...e.querySelectorAll('canvas')].map(c => c.toDataURL()).join()")


def settle(root: Locator) -> None:
    expect(root.locator("[aria-busy=true]")).to_have_count(0, timeout=60_000)


@pytest.mark.parametrize("part", dict(PARTS))
def test_it_answers_to_the_hand_and_to_the_keyboard_tells_it_and_follows(root: Locator, part: str):
    assert root.locator("img, .live-part-still").count() == 0, "the still picture has gone"
    assert part == "places" or root.page.evaluate("moved") < 0.1  # it is reached by scrolling
    page, states = root.page, [(said(root), drawn(root))]
    touched = root.locator(TOUCHED).locator("visible=true").first
    touched.scroll_into_view_if_needed()
    box = touched.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + box["width"] / 5, middle[1] - box["height"] / 5, steps=4)
    page.mouse.up()
    if part == "shuffle":  # the second of two patches
        root.locator(".part-grid button").nth(9).click()
    settle(root)
    states.append((said(root), drawn(root)))
    assert states[0] != states[1]
    expect(root.locator("[aria-live=polite]")).to_have_text(said(root), timeout=10_000)
    if part in ("boxes", "donors", "shuffle"):
        for i in (1, 6):
            root.locator(".part-box, .part-grid button").nth(i).press("Enter")
            settle(root)
        assert (said(root), drawn(root)) != states[1]
        return
    for key in ("ArrowLeft", "ArrowRight"):  # a slider may stand at an end
        for _ in range(4):
            first(root).press(key)
        states.append((said(root), drawn(root)))
    assert len({*states[1:]}) > 1
    away = "ArrowLeft" if part == "fibre" else "ArrowRight"  # from its end
    first(root).press(away)
    spent = processor(page)
    for _ in range(10):
        first(root).press(away)
    assert 0 < spent() / 10 < FOLLOWS


@pytest.mark.parametrize("part", ["patches"])
def test_a_photograph_is_read_and_a_damaged_one_changes_nothing(root: Locator, tmp_path: Path):
    before = drawn(root)
    (tmp_path / "broken.png").write_bytes(b"no image")
    choose = root.locator("input[type=file]")
    choose.set_input_files(tmp_path / "broken.png")
    expect(root.locator(".part-say")).to_contain_text("no image that the browser can read")
    assert drawn(root) == before
    choose.set_input_files(next(SITE.glob("_images/*.png")))
    canvases = "[...document.querySelectorAll('.part canvas')].map(c => c.toDataURL()).join()"
    root.page.wait_for_function(f"before => {canvases} != before", arg=before)


def test_they_work_from_a_folder(browser: Browser, without_scripts: Page, site: str):
    assert len({page for _, page in PARTS}) >= 12 and len(dict(PARTS)) >= 13
    for part, where in PARTS:
        page = browser.new_page()
        page.goto((SITE / where).as_uri())
        assert said(begun(page, part))
        page.close()
        without_scripts.goto(site + where)
        root = without_scripts.locator(f"[data-part={part}]")
        assert "first state" in root.locator(".live-part-still").inner_text()
        root.scroll_into_view_if_needed()
        assert root.locator("img").first.is_visible()  # the light one


def press(root: Locator, words: str) -> None:
    root.get_by_role("button", name=words, exact=True).press("Enter")


def accuracy(root: Locator) -> float:
    """What the drawing says of test digits, in percent."""
    text = root.locator(".part-title", has_text="dashed").inner_text()
    found = re.search(r"Test\s([\d.]+)", text)
    return float(found[1]) if found else 0


LEARN = pytest.mark.parametrize("part", ["learn"])


@LEARN
def test_a_training_moves_the_accuracy_and_pauses(root: Locator):
    press(root, "Train")
    expect(root.locator(".part-say")).to_contain_text("Step 100", timeout=60_000)
    press(root, "Pause")
    expect(root.locator(".part-say")).to_contain_text("Paused at step")
    for _ in range(5):  # steps that had been asked for are still told
        before = drawn(root)
        root.page.wait_for_timeout(3_000)
        if drawn(root) == before:
            break
    else:
        pytest.fail("it goes on while it is paused")
    assert "Paused" in said(root) and accuracy(root) > 40
    press(root, "Go on")
    expect(root.locator(".part-say")).to_contain_text("Step 150", timeout=60_000)


@LEARN
def test_another_knob_begins_another_training_and_keeps_the_first_in_the_plot(root: Locator):
    press(root, "Train")
    expect(root.locator(".part-say")).to_contain_text("Step 50", timeout=60_000)
    root.locator("summary").click()
    press(root, "Positions")
    expect(root.locator(".part-say")).to_contain_text("(without positions): it can only guess.")
    expect(root.locator(".part-runs .part-weight")).to_have_count(1)
    root.page.wait_for_timeout(1_000)
    assert accuracy(root) == 0, "what the first still answers is not taken for the second's"
    for _ in range(3):  # on, off and on again
        root.locator(".part-button").first.press("Enter")
    expect(root.locator(".part-say")).to_contain_text("Step 50 of 400 (without", timeout=60_000)
