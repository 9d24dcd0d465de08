"""What no tree of elements shows: rings, indents, what a narrow screen and paper hold."""

from itertools import product

import pytest

CHAPTER = "book/13_what_layernorm_forgets.html"


@pytest.mark.parametrize("name", ["index.html", CHAPTER])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_whatever_has_the_focus_shows_it(opened, name: str, theme: str, width: int):
    page = opened(name, theme, width)
    seen, dull = set(), []
    for _ in range(400):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
            const has = document.activeElement;
            const shown = [has, has.closest('.bd-search'), has.querySelector('.toctree-toggle')];
            const styles = shown.filter(e => e).map(e => getComputedStyle(e));
            const outlined = s => s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2;
            const covers = has.matches('.sd-stretched-link');  // its card, which has a shadow
            const ring = covers ? outlined(getComputedStyle(has.parentElement))
                : styles.some(s => outlined(s) || s.boxShadow != 'none');
            has.dataset.stop ??= String(document.querySelectorAll('[data-stop]').length);
            return [has.dataset.stop, ring, has.outerHTML.slice(0, 120)];
        }""")
        if found[0] in seen or found[2].startswith("<body"):
            break
        seen.add(found[0])
        dull += [] if found[1] else [found[2]]
    assert len(seen) > 5
    assert dull == []


def test_icons_are_seen(opened):
    for theme, width in product(("light", "dark"), (390, 1280)):
        page = opened(CHAPTER, theme, width)
        buttons = page.locator(".bd-header-article .btn:visible, .bd-header-article button:visible")
        assert buttons.count() >= 4
        for button in buttons.all():
            icon = button.locator("svg.icon:visible")
            assert icon.count() == 1, button.evaluate("e => e.outerHTML")
            assert icon.bounding_box()["width"] >= 8
            fill = icon.evaluate("e => getComputedStyle(e).fill")
            assert fill != page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_symbols_fit_onto_a_phone(opened):
    page = opened("book/glossary.html", "light", 390)
    assert page.locator("table.symbols th").all_inner_texts()[:2] == ["symbol", "meaning"]
    for symbol in page.locator("table.symbols td:first-child").all():
        fits = """e => [...e.querySelectorAll('math')].every(
            math => math.getBoundingClientRect().right <= e.getBoundingClientRect().right)"""
        assert symbol.evaluate(fits), symbol.inner_html()
    for meaning in page.locator("table.symbols td:nth-child(2)").all():
        box = meaning.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["width"] >= 200


def test_a_dark_page_is_printed_light_and_in_whole_pieces(opened):
    page = opened(CHAPTER, "dark", 1280)
    theme = "document.documentElement.dataset.theme"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(theme) == "light"
    page.emulate_media(media="print")
    for part in ("div.cell_input", "div.highlight", "figure", ".cell_output"):
        style = page.locator(part).first.evaluate("e => getComputedStyle(e).breakInside")
        assert style == "avoid", part
    assert page.locator("article h1").is_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(theme) == "dark"


def test_images_keep_their_shape(opened):
    for width in (390, 1280):
        page = opened(CHAPTER, "light", width)
        for picture in page.locator("article img:not(.live-part img):visible").all():
            picture.scroll_into_view_if_needed()
            wide, high, own = picture.evaluate(
                """async e => {
                    await e.decode();
                    const style = getComputedStyle(e);
                    const inner = (side, a, b) => e[side] - parseFloat(style[a]) - parseFloat(style[b]);
                    return [inner('clientWidth', 'paddingLeft', 'paddingRight'),
                            inner('clientHeight', 'paddingTop', 'paddingBottom'),
                            e.naturalWidth / e.naturalHeight];
                }"""
            )
            assert wide / high == pytest.approx(own, rel=0.03)
