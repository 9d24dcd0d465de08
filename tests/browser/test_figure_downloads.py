"""A figure can be taken along: its file comes by one click, its citation lies in the clipboard."""

import pytest
from PIL import Image

PAGES = ("book/00_in_an_hour.html", "book/02_attention.html", "book/recipes.html")


@pytest.fixture(scope="module")
def context(browser):
    """A browser whose clipboard the test may read."""
    made = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    yield made
    made.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_file_is_saved_under_the_figures_name_and_the_citation_copied(
    context, site, name, tmp_path
):
    page = context.new_page()
    page.goto(site + name)
    figure = page.locator("figure:has(> figcaption .take)").first
    links = figure.locator(".take a[download]")
    kinds = links.all_inner_texts()
    assert kinds[-1] == "PNG" and set(kinds) <= {"SVG", "PNG"}
    for kind, link in zip(kinds, links.all(), strict=True):
        with page.expect_download() as event:
            link.click()
        file = tmp_path / event.value.suggested_filename
        event.value.save_as(file)
        assert file.name == f"{figure.get_attribute('id')}.{kind.lower()}"
        if kind == "PNG":
            with Image.open(file) as image:
                assert image.format == "PNG" and min(image.size) > 100
        else:
            assert "<svg" in file.read_text(encoding="utf-8")
    page.evaluate("navigator.clipboard.writeText('something else')")
    number = figure.locator(".caption-number").inner_text().removeprefix("Fig. ").strip()
    button = figure.locator(".take button")
    button.click()
    page.wait_for_function("(button) => button.textContent == 'citation copied'",
                           arg=button.element_handle())  # fmt: skip
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"Figure {number} of “") and copied.endswith("CC BY 4.0.")
    page.close()


def test_the_page_of_all_figures_shows_each_and_leads_to_it(context, site):
    page = context.new_page()
    page.goto(site + "book/figures.html")
    entries = page.locator(".figures-to-take > li")
    assert entries.count() > 100
    addresses = entries.locator("a.reference").evaluate_all("(all) => all.map((a) => a.href)")
    assert len(set(addresses)) == entries.count()
    assert {site + name for name in PAGES} <= {address.partition("#")[0] for address in addresses}
    for file in entries.locator("a[download]").evaluate_all("(all) => all.map((a) => a.href)"):
        assert context.request.head(file).ok, file
    page.close()
