"""The large ViT in its page, where the site was built with it: as torch computes it, when asked for."""

import json

import pytest
import torch
from playwright.sync_api import Browser, expect

import minivit
from book._ext.live import PHOTOGRAPHS, SIDE
from book.tools.address import SITE
from book.tools.large_model import Inside
from tests.browser.conftest import open_page, ready
from vitlab.convert.dinov2 import NAME, dinov2_small_saliency
from vitlab.data.photographs import photograph
from vitlab.instruments import principal_components

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
def model() -> minivit.ViT:
    if not ABOUT.exists():
        pytest.skip("the site was built without it: python -m book.tools.large_model")
    name = json.loads(ABOUT.read_text(encoding="utf-8"))["name"]
    try:
        return dinov2_small_saliency("installed" if name == NAME else "original")
    except (OSError, ValueError) as error:
        pytest.skip(f"no weights to compare with: {error}")


def test_its_tokens_and_their_directions_are_torchs_on_four_photographs(
    browser: Browser, site: str, model: minivit.ViT
):
    visit = open_page(browser, site, "book/large.html")
    ready(visit.page.locator("[data-part=large]"))
    for name in PHOTOGRAPHS:
        pixels = photograph(name, SIDE).permute(1, 2, 0).contiguous()
        tokens, along = visit.page.evaluate(RUN, pixels.flatten().tolist())
        with torch.no_grad():
            expected = Inside(model)(pixels)[0][-1]
        found = torch.tensor(tokens).view_as(expected)
        assert torch.cosine_similarity(found, expected).mean() >= CLOSE, name
        patches = expected[1:]
        basis = principal_components(patches[:, :, None, None]).pictures[:3].flatten(1)
        shares = (patches - patches.mean(0)).double() @ basis.mT  # [patches, 3]
        cosines = torch.cosine_similarity(torch.tensor(along).double(), shares.mT)
        assert (cosines > 0.9).all(), (name, cosines)
    visit.close()


def test_nothing_large_is_fetched_before_the_press_and_then_a_hand_sees_its_patch(
    browser: Browser, site: str, model: minivit.ViT
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
