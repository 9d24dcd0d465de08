"""The page's engine and the large ViT in a real browser: speed, files, and torch's numbers."""

import json

import pytest
import torch
from playwright.sync_api import Browser, expect

import minivit
from book._ext.live import PHOTOGRAPHS, SIDE
from book.tools.address import SITE
from book.tools.large_model import Inside
from tests.browser.conftest import Quiet, open_page, processor, ready, served
from tests.page.conftest import ENGINE, images, model, with_every_half
from vitlab.convert.dinov2 import NAME, dinov2_small_saliency
from vitlab.convert.page import export_page, script
from vitlab.data.photographs import photograph
from vitlab.instruments import principal_components


@pytest.mark.parametrize(("name", "milliseconds"), [("digits_vit", 16), ("cifar10_vit", 100)])
def test_an_answer_is_there_before_the_hand_notices(browser, site, name, milliseconds):
    page = browser.new_page()
    page.goto(site + "404.html")
    page.add_script_tag(url=site + "_static/live/engine.js")
    page.add_script_tag(content=script(model(name), "model").decode("utf-16"))
    pixels = images(model(name), 1)[0].permute(1, 2, 0).flatten().tolist()
    page.evaluate(
        """(pixels) => {
            const engine = minivitEngine(), model = engine.open(minivitModels.model);
            const image = engine.normalised(model, pixels);
            globalThis.answer = (n) => { while (n--) engine.forward(model, image); };
            answer(10);
        }""",
        pixels,
    )
    spent = processor(page)
    page.evaluate("answer(20)")
    assert 0 < spent() / 20 * 1000 < milliseconds
    page.close()


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", None])
def test_a_model_is_read_whatever_the_server_says_of_its_encoding(browser, tmp_path, charset):
    """Rightly or not; None: from a folder. The worker that gets the model reads the same."""
    of = with_every_half()
    export_page(of, tmp_path / "m.js")
    (tmp_path / "engine.js").write_text(ENGINE.read_text("utf-8"), "utf-8")
    scripts = '<script src="m.js"></script><script src="engine.js"></script>'
    (tmp_path / "m.html").write_text(f'<!DOCTYPE html><meta charset="utf-8">{scripts}')
    types = {**Quiet.extensions_map, ".js": f"text/javascript; charset={charset}"}
    says = type("Says", (Quiet,), {"extensions_map": types})
    read = """async () => {
        const { open } = minivitEngine(), weights = [open(minivitModels.m)];
        const text = `onmessage = ({ data }) => postMessage((${minivitEngine})().open(data))`;
        const worker = new Worker(URL.createObjectURL(new Blob([text])));
        const answer = new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
        worker.postMessage(minivitModels.m);
        weights.push(await answer);
        return weights.map(({ classes, layers }) =>
            [classes, [...layers["blocks.0.mlp.up"].weight]]);
    }"""
    page = browser.new_page()
    with served(tmp_path, says) as address:
        page.goto((address if charset else f"{tmp_path.as_uri()}/") + "m.html")
        found = page.evaluate(read)
    page.close()
    for classes, weight in found:
        assert classes == of.classes
        assert torch.equal(torch.tensor(weight), of.blocks[0].mlp.up.weight.flatten())


ABOUT = SITE / "_static/large/about.json"
CLOSE = 0.99  # cosine of a photograph's tokens with torch's, on average
RUN = """async (pixels) => {
  const url = new URL("_static/live/parts/large_worker.mjs", new URL("..", location));
  const worker = globalThis.large ??= new Worker(url, { type: "module" });
  const answer = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => data.bytes || resolve(data.answer ?? data.error);
    worker.postMessage({ pixels: Uint8Array.from(pixels), side: Math.sqrt(pixels.length / 3) });
  });
  const tokens = answer.tokens.slice(-answer.tokens.length / answer.dims[0]);
  const along = minivitParts.large.compute.directions(tokens, tokens.length / answer.dims[2]);
  return [Array.from(tokens), along.map((values) => Array.from(values))];
}"""


@pytest.fixture(scope="module")
def dinov2() -> minivit.ViT:
    if not ABOUT.exists():
        pytest.skip("the site was built without it: python -m book.tools.large_model")
    name = json.loads(ABOUT.read_text(encoding="utf-8"))["name"]
    try:
        return dinov2_small_saliency("installed" if name == NAME else "original")
    except (OSError, ValueError) as error:
        pytest.skip(f"no weights to compare with: {error}")


def test_its_tokens_and_their_directions_are_torchs_on_four_photographs(
    browser: Browser, site: str, dinov2: minivit.ViT
):
    visit = open_page(browser, site, "book/large.html")
    ready(visit.page.locator("[data-part=large]"))
    for name in PHOTOGRAPHS:
        pixels = photograph(name, SIDE).permute(1, 2, 0).contiguous()
        tokens, along = visit.page.evaluate(RUN, pixels.flatten().tolist())
        with torch.no_grad():
            expected = Inside(dinov2)(pixels)[0][-1]
        found = torch.tensor(tokens).view_as(expected)
        assert torch.cosine_similarity(found, expected).mean() >= CLOSE, name
        patches = expected[1:]
        basis = principal_components(patches[:, :, None, None]).pictures[:3].flatten(1)
        shares = (patches - patches.mean(0)).double() @ basis.mT  # [patches, 3]
        cosines = torch.cosine_similarity(torch.tensor(along).double(), shares.mT)
        assert (cosines > 0.9).all(), (name, cosines)
    visit.close()


def test_nothing_large_is_fetched_before_the_press_and_then_a_hand_sees_its_patch(
    browser: Browser, site: str, dinov2: minivit.ViT
):
    visit = open_page(browser, site, "book/large.html", "dark", 390)
    root = ready(visit.page.locator("[data-part=large]"))
    assert not any(".gz" in url or "ort" in url.rpartition("/")[2] for url in visit.requests)
    root.get_by_role("button", name="Fetch the model").click()
    expect(root.locator(".part-maps")).to_be_visible(timeout=60_000)
    said = root.locator(".part-say")
    expect(said).to_contain_text("Block 12, from row 7, column 5")
    root.locator(".part-point").press("ArrowRight")
    expect(said).to_contain_text("Block 12, from row 7, column 6")
    root.get_by_label("the class token").check()
    expect(said).to_contain_text("from the class token")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.close()
