"""Live models in other people's pages: on another address, from a folder, and in frames."""

import gzip
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from book.tools.address import SITE
from tests.browser.conftest import Visit, open_page, ready, served

HEAVIEST, CHAPTER = 400_000, 450_000  # bytes of the front page before it is touched, of chapter 2
SHOWS = {
    "attention": (".lit-heads", ".live-switches"),
    "lens": (".live-lens", ".lit-head"),
    "switches": (".live-switches", ".lit-head"),
    "back": (".live-way", ".live-class"),
    "all": (".live-truth", None),
}
REFUSED = [
    ("data-model='digits_vit' data-show='everything'", 'one of all, attention, .*: got "every'),
    ("data-model='../x' data-show='all'", 'is the name of a model: got "../x"'),
    ("data-model='mine' data-show='all'", "models/mine.js could not be loaded"),
    ("data-model='cifar10_vit' data-show='back'", "takes too long for a page"),
]


def bare(source: str, *divs: str) -> str:
    return f"<!DOCTYPE html><title>Mine</title>{''.join(divs)}<script src='{source}'></script>"


@pytest.fixture
def elsewhere(tmp_path) -> Iterator[tuple]:
    """A folder, and the address of a server that has it: not the site's."""
    with served(tmp_path) as address:
        yield tmp_path, address


def test_a_div_and_a_script_elsewhere_show_one_thing_or_say_why_not(browser, site, elsewhere):
    folder, address = elsewhere
    divs = [f"<div data-model='digits_vit' data-show='{show}'></div>" for show in SHOWS]
    divs += [f"<div {attributes}></div>" for attributes, _ in REFUSED]
    (folder / "mine.html").write_text(bare(f"{site}_static/live/live.js", *divs))
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address + "mine.html")
    for i, (there, gone) in enumerate(SHOWS.values()):
        live = ready(page.locator("[data-model]").nth(i))
        assert live.locator(".live-say").inner_text().startswith("The model says 3")
        assert live.locator(there).count() and (gone is None or not live.locator(gone).count())
        assert live.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(255, 255, 255)"
    assert errors == []
    for attributes, message in REFUSED:
        live = page.locator(f"[{attributes.replace(' ', '][')}]")
        live.scroll_into_view_if_needed()
        expect(live.get_by_role("alert")).to_have_text(re.compile(message), timeout=30_000)
    page.close()


HOSTS = {  # pages that have variables, themes or reset styles of their own
    "theme": ("<html data-theme=dark>", ""),
    "variables": ("<style>:root { --pst-color-primary: red; --holds: red }</style>", ""),
    "shadow": (
        "<div id=host></div>",
        """<script>
        const tree = document.getElementById("host").attachShadow({ mode: "open" });
        tree.innerHTML = "<div data-model=digits_vit data-show=attention></div>";
        addEventListener("load", () => minivitBegin(tree));
    </script>""",
    ),
}


@pytest.mark.parametrize("host", HOSTS)
def test_in_any_page_heads_are_lit_in_the_models_own_colours(browser, site, elsewhere, host: str):
    folder, address = elsewhere
    before, after = HOSTS[host]
    div = "" if host == "shadow" else "<div data-model=digits_vit data-show=attention></div>"
    page = bare(f"{site}_static/live/live.js", before, div) + after
    (folder / "mine.html").write_text(page)
    page = browser.new_page()
    page.goto(address + "mine.html")
    live = ready(page.locator("[data-model]"))
    lit = """e => [...e.getContext('2d').getImageData(0, 0, e.width, e.height).data]
        .some((_, i, all) => i % 4 == 0 && all[i + 3] > 99 && all[i] > all[i + 1] + 60)"""
    assert all(head.evaluate(lit) for head in live.locator(".lit-head canvas").all())
    colours = live.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]")
    assert colours == ["rgb(34, 40, 50)", "rgb(255, 255, 255)"]
    page.close()


def test_two_of_them_stand_in_a_page_from_a_folder_and_do_not_meddle(browser: Browser, tmp_path):
    div = "<div data-model='digits_vit' data-show='lens'{}></div>"
    source = (SITE / "_static/live/live.js").as_uri()
    html = bare(source, div.format(""), div.format(" data-theme=dark"))
    (tmp_path / "mine.html").write_text(html)
    page = browser.new_page()
    page.goto((tmp_path / "mine.html").as_uri())
    first, second = (ready(page.locator("[data-model]").nth(i)) for i in (0, 1))
    first.get_by_label("draw", exact=True).check()
    assert second.get_by_label("cover it").is_checked()
    second.locator(".live-samples button").nth(1).click()
    expect(second.locator(".live-say")).to_contain_text("says 0", timeout=30_000)
    assert "says 3" in first.locator(".live-say").inner_text()
    assert second.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(20, 24, 30)"
    page.close()


def test_the_page_of_snippets_has_this_sites_address_and_all_of_them_run(browser, site):
    visit = open_page(browser, site, "book/embed.html")
    page = visit.page
    ready(page.locator("[data-model]").first)
    codes = page.locator(".highlight pre").all_inner_texts()
    assert sum(site + "_static/live/" in code for code in codes) == 2
    assert not any("SITE" in code for code in codes)
    for i in range(2):
        page.locator("iframe").nth(i).scroll_into_view_if_needed()
        inside = ready(page.frame_locator("iframe").nth(i).locator("[data-model]"))
        left = "e => innerHeight - document.body.offsetHeight"
        for walked in (False, True):
            if walked and (walk := inside.get_by_role("button", name="Go back")).count():
                walk.click()
                expect(inside.locator(".live-way li").last).to_be_visible(timeout=120_000)
            page.wait_for_timeout(500)
            assert inside.evaluate(left) == 0, "the frame is as high as what it shows"
    visit.close()


def weight(visit: Visit) -> int:
    """Bytes of what a page has asked for, as a server packs them."""
    paths = {
        url.removeprefix(visit.address).split("?")[0] or "index.html" for url in visit.requests
    }
    return sum(len(gzip.compress((SITE / p).read_bytes())) for p in paths if (SITE / p).is_file())


def test_a_chapter_is_light_and_a_sliders_frames_come_when_a_hand_does(browser: Browser, site: str):
    visit = open_page(browser, site, "book/02_attention.html", "light", 390)
    assert weight(visit) < CHAPTER
    frames = visit.page.locator(".frames").first
    hidden = frames.locator("img[hidden]").evaluate_all("all => all.map((image) => image.src)")
    assert hidden and not {*hidden} & {*visit.requests}
    frames.evaluate("e => (e.closest('details').open = true)")  # it follows a prediction
    frames.hover()
    there = "e => [...e.querySelectorAll('img:not(.only-dark)')].every(i => i.naturalWidth)"
    visit.page.wait_for_function(there, arg=frames.element_handle(), timeout=30_000)
    visit.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_front_page_shows_all_heads_at_once_and_loads_a_model_when_it_needs_one(
    browser, site, without_scripts, width: int, height: int
):
    visit = open_page(browser, site, "index.html", "light", width)
    page = visit.page
    page.set_viewport_size({"width": width, "height": height})
    hero = page.locator(".hero[data-ready]")
    photo, heads = hero.locator(".lit-photo"), hero.locator(".lit-head")
    boxes = [photo.bounding_box(), hero.locator(".lit-heads").bounding_box()]
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= height for box in boxes)
    assert weight(visit) < HEAVIEST
    shown = """e => [...e.querySelectorAll('.lit-head canvas')].map(c => c.toDataURL()).join()"""
    large = "e => e.querySelector('canvas').toDataURL()"
    stored, whole = hero.evaluate(shown), photo.evaluate(large)
    page.mouse.click(
        boxes[0]["x"] + 0.6 * boxes[0]["width"], boxes[0]["y"] + 0.7 * boxes[0]["height"]
    )
    expect(hero.locator(".part-say")).to_contain_text("says cat, 62", timeout=30_000)
    assert hero.evaluate(shown) != stored and photo.evaluate(large) == whole
    assert "cifar10" not in str(visit.requests)
    heads.nth(9).click()
    expect(heads.nth(9)).to_have_attribute("aria-pressed", "true")
    assert photo.evaluate(large) != whole
    assert "Block 3, head 2" in hero.locator(".part-say").inner_text()
    link = hero.get_by_role("link", name="This head in numbers").get_attribute("href")
    assert link == f"{site}book/live.html?model=cifar10_vit&image=1&patch=6.5&head=3.2"
    hero.get_by_role("button", name="Switch this head off").click()
    expect(hero.locator(".part-say")).to_contain_text("says cat, 68", timeout=30_000)
    assert "cifar10" in str(visit.requests)
    assert "switched off" in heads.nth(9).get_attribute("aria-label")
    hero.get_by_role("button", name="A cup").click()
    expect(hero.locator(".part-say")).not_to_contain_text("cat", timeout=30_000)
    visit.close()
    without_scripts.goto(site)
    for still in without_scripts.locator(".hero img").all():
        assert still.is_visible() and still.evaluate("e => e.naturalWidth") > 100
