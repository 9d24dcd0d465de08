"""The page in which a model runs, as a reader uses it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import open_page, ready

LIVE = "book/live.html"


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    visit = open_page(browser, site, f"{LIVE}?model=digits_vit")
    ready(digits(visit.page))
    yield visit.page
    visit.close()


def digits(page: Page) -> Locator:
    return page.locator("[data-model=digits_vit]")


def said(page: Page) -> str:
    return digits(page).locator(".live-say").inner_text()


def chances(page: Page) -> list[str]:
    return digits(page).locator(".live-value").all_inner_texts()


def settle(live: Locator) -> None:
    expect(live).to_have_attribute("aria-busy", "false", timeout=30_000)


def press(page: Page, name: str) -> None:
    """Presses a button of the digits' model, and waits for the answer."""
    digits(page).get_by_role("button", name=name, exact=True).click()
    settle(digits(page))


@pytest.mark.parametrize(("name", "word"), [("digits_vit", "3"), ("cifar10_vit", "cat")])
def test_an_image_is_classified_at_once_and_every_sample_has_torchs_logits(page, name, word):
    page.get_by_label("photographs" if name == "cifar10_vit" else "handwritten digits").check()
    live = page.locator(f"[data-model={name}]")
    expect(live.locator(".live-say")).to_contain_text(f"says {word}", timeout=30_000)
    assert re.match(rf"The model says {word} with \d\d", live.locator(".live-say").inner_text())
    assert live.locator(".live-say").get_attribute("aria-live") == "polite"
    live.locator("summary").click()
    for sample in live.locator(".live-samples button").all():
        sample.click()
        expect(sample).to_have_attribute("aria-pressed", "true")
        settle(live)
        found = re.search(r"difference: (\S+)\. ", live.locator(".live-truth p").inner_text())
        assert 0 < float(found[1]) < 1e-4
        assert live.locator("tbody tr").count() == 10


def test_switches_move_the_answer_and_are_put_back(page: Page):
    before = chances(page)
    press(page, "Attention of block 1")
    assert "With everything in place" in said(page)
    switch = digits(page).get_by_role("button", name="Attention of block 1", exact=True)
    assert switch.get_attribute("aria-pressed") == "false"
    for name in ("Head 2 of block 3", "Positions", "Norms of block 2", "MLP of block 4"):
        last = chances(page)
        press(page, name)
        assert chances(page) != last, name
    press(page, "Put all back")
    assert chances(page) == before and "in place" not in said(page)
    press(page, "Positions")  # without them shuffled patches change nothing
    before = chances(page)
    digits(page).get_by_role("button", name="Shuffle").click()
    settle(digits(page))
    assert chances(page) == before
    press(page, "Positions")
    assert chances(page) != before


def test_patches_are_asked_covered_and_swapped_by_keyboard(page: Page):
    live, patch = digits(page), digits(page).locator(".live-patches button")
    maps = "[...document.querySelectorAll('.lit-head canvas')].map(c => c.toDataURL()).join()"
    before, seen = chances(page), page.evaluate(maps)
    live.locator(".live-patches button[tabindex='0']").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.evaluate(maps) != seen and chances(page) == before
    assert "patch=2.3" in page.url, "a link to the page leads here"
    live.get_by_label("cover it").check()
    patch.nth(5).press("Enter")
    settle(live)
    covered = chances(page)
    assert covered != before
    live.get_by_label("swap two").check()
    patch.nth(1).press("Space")
    patch.nth(14).press("Space")
    settle(live)
    assert chances(page) not in (before, covered)


def test_a_class_shows_what_speaks_for_it(page: Page):
    overlay = digits(page).locator(".live-overlay")
    assert not overlay.is_visible()
    digits(page).locator(".live-class").nth(3).click()
    expect(overlay).to_be_visible(timeout=30_000)
    assert "speak for 3" in digits(page).locator(".live-hint").first.inner_text()
    digits(page).locator(".live-class").nth(3).click()
    expect(overlay).not_to_be_visible()
    page.mouse.move(5, 5)
    digits(page).locator(".live-class").nth(3).hover()
    expect(overlay).to_be_visible(timeout=30_000)
    page.mouse.move(5, 5)
    expect(overlay).not_to_be_visible()


def test_a_one_is_drawn_by_hand_and_a_file_that_is_whole_is_read(page: Page, tmp_path: Path):
    live = digits(page)
    live.get_by_label("draw", exact=True).check()
    live.get_by_role("button", name="Clear").click()
    box = live.locator(".live-patches").bounding_box()
    unit = box["width"] / 8
    page.mouse.move(box["x"] + 4 * unit, box["y"] + unit / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 4 * unit, box["y"] + 7.5 * unit, steps=30)
    page.mouse.up()
    expect(live.locator(".live-say")).to_contain_text("The model says 1", timeout=30_000)
    assert not live.locator(".live-truth").is_visible(), "torch has never seen it"
    choose, before = live.locator("input[type=file]"), chances(page)
    (tmp_path / "broken.png").write_bytes(b"no image")
    choose.set_input_files(tmp_path / "broken.png")
    damaged = "no image that the browser can read"
    expect(live.locator(".live-say")).to_contain_text(damaged, timeout=30_000)
    assert chances(page) == before
    expect(live).to_have_attribute("aria-busy", "false")
    for ink in (0, 255):  # on nothing: transparency
        one = Image.new("RGBA", (8200, 6100))
        ImageDraw.Draw(one).line((4100, 400, 4100, 5700), fill=(ink, ink, ink, 255), width=900)
        one.save(tmp_path / "one.png")  # of fifty million pixels, as phones take them
        choose.set_input_files(tmp_path / "one.png")
        expect(live.locator(".live-say")).to_contain_text("The model says 1", timeout=30_000)
    choose.set_input_files(tmp_path / "one.png")
    live.locator(".live-samples button").nth(1).click()  # while the file is decoded
    settle(live)
    page.wait_for_timeout(3000)
    assert said(page).startswith("The model says 0"), "the later choice stays"
    Image.new("L", (60, 60), 200).save(tmp_path / "blank.png")
    choose.set_input_files(tmp_path / "blank.png")
    expect(live.locator(".live-say")).to_have_text("Nothing is drawn.", timeout=30_000)
    zero = Image.new("L", (400, 300), 255)  # ink on paper, which the model never met
    ImageDraw.Draw(zero).ellipse((120, 12, 280, 288), outline=10, width=36)
    zero.save(tmp_path / "zero.png")
    choose.set_input_files(tmp_path / "zero.png")
    expect(live.locator(".live-say")).to_contain_text("The model says 0", timeout=30_000)


def test_the_way_back_leads_to_the_image(page: Page):
    back = digits(page).locator(".live-back")
    back.get_by_label("4", exact=True).check()
    back.get_by_role("button", name="Go back").click()
    hint = back.locator(".live-hint[aria-live]")
    expect(hint).to_contain_text("All 64 pixels are back", timeout=120_000)
    titles = back.locator(".live-way strong").all_inner_texts()
    assert titles[:4] == ["After block 4", *(f"Block {i} undone" for i in (4, 3, 2))]
    assert titles[-1] == "The image"
    assert int(re.search(r"(\d+) dB", back.locator(".live-way li").last.inner_text())[1]) > 200
    digits(page).locator(".live-samples button").nth(1).click()
    expect(back.locator(".live-way li")).to_have_count(0)
    press(page, "Residual of block 2")
    back.get_by_role("button", name="Go back").click()
    expect(hint).to_contain_text("Without its residual connection")


def test_two_images_have_one_answer_and_a_walk_can_be_stopped(page: Page):
    same = digits(page).locator(".live-same")
    same.get_by_role("button", name="Walk").click()
    expect(same.locator("li")).to_have_count(2, timeout=60_000)
    same.get_by_role("button", name="Stop").click()
    hint = same.locator(".live-hint[aria-live]")
    expect(hint).to_contain_text("the model cannot tell them apart")
    one, other = same.locator("li > span:first-of-type").all_inner_texts()
    assert one == other and one.startswith("The model says 3 with")
    assert len(set(same.locator("canvas").evaluate_all("all => all.map(e => e.toDataURL())"))) == 2
    digits(page).locator(".live-samples button").nth(1).click()
    expect(same.locator("li")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_image_and_heads_stand_in_one_view_and_a_head_opens_down_to_its_numbers(
    browser: Browser, site: str, width: int, height: int
):
    visit = open_page(browser, site, LIVE, "dark", width)
    page, live = visit.page, visit.page.locator("[data-address]")
    page.set_viewport_size({"width": width, "height": height})
    expect(live.locator(".live-say")).to_contain_text("says cat", timeout=30_000)
    live.locator(".live-frame").evaluate("e => scrollBy(0, e.getBoundingClientRect().top - 180)")
    for part in (".live-frame", ".live-maps"):
        box = live.locator(part).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, part
    photo, opened = live.locator(".live-shown .live-photo"), live.locator(".live-opened")
    whole = photo.evaluate("e => e.toDataURL()")
    live.locator(".lit-heads").first.get_by_role("button").nth(9).click()
    expect(opened.locator("tfoot")).to_contain_text("100.0")
    assert photo.evaluate("e => e.toDataURL()") != whole
    shares = [float(t.split()[0]) for t in opened.locator("td:nth-child(4)").all_inner_texts()[:-1]]
    assert shares[:5] == sorted(shares[:5], reverse=True) and abs(sum(shares) - 100) < 0.4
    scores = opened.locator("tbody tr").first.locator("td").all_inner_texts()
    product, score = (float(text.replace("\u2212", "-")) for text in scores[:2])
    assert abs(product / 32**0.5 - score) < 0.01
    assert scores[0] in opened.locator(".live-spelled").inner_text()
    opened.get_by_role("button", name="Switch this head off").click()
    expect(live.locator(".live-say")).to_contain_text("With everything in place")
    live.get_by_role("button", name="Keep this state").click()
    live.get_by_role("button", name="Put all back").click()
    kept, now = (card.inner_text() for card in live.locator(".live-card").all())
    expect(live.locator(".live-card").nth(1)).not_to_contain_text("without")
    assert "without head 2 of block 3" in kept and "Now" in now
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    visit.close()


def test_an_address_sets_the_state_says_it_and_may_ask_for_nonsense(opened, site: str):
    state = "model=digits_vit&image=2&patch=1.4&head=3.2&without=attention.1,positions&off=4.1&covered=2.2&tap=cover"
    page = opened(f"{LIVE}?{state}")
    live = ready(digits(page))
    name = live.locator(".live-opened .live-name")
    expect(name).to_have_text("Block 3, head 2, from row 1, column 4")
    for name in ("Attention of block 1", "Positions", "Head 1 of block 4"):
        switch = live.get_by_role("button", name=name, exact=True)
        assert switch.get_attribute("aria-pressed") == "false", name
    assert live.get_by_label("cover it").is_checked() and page.url == f"{site}{LIVE}?{state}"
    nonsense = "image=99&patch=0.9&head=7.1&without=__proto__,mlp.12&order=1,1"
    page = opened(f"{LIVE}?model=constructor&{nonsense}")
    live = page.locator("[data-model=cifar10_vit]")
    expect(live.locator(".live-say")).to_contain_text("says cat", timeout=30_000)
    page.get_by_role("link", name="Switch off positions").click()
    say = digits(page).locator(".live-say")
    expect(say).to_contain_text("everything in place", timeout=30_000)


def test_a_walk_sets_states_and_points_at_what_changed(page: Page):
    seen = set()
    digits(page).get_by_role("button", name="Show me around").click()
    for i in range(1, 9):
        expect(digits(page).locator(".live-told p")).to_contain_text(f"{i} of 8")
        for seen_too in (".is-pointed", ".live-told"):
            expect(digits(page).locator(seen_too)).to_be_in_viewport()
        settle(digits(page))
        seen.add(tuple(chances(page)))
        digits(page).get_by_role("button", name="Next" if i < 8 else "Done").click()
    assert len(seen) == 6 and not digits(page).locator(".is-pointed, .live-told:visible").count()
