"""The page's engine in a real browser: what tests/page asks of it under Node, and its speed."""

import pytest
import torch
from playwright.sync_api import Browser, Page

from minivit import ViT
from tests.browser.conftest import Quiet, processor, served
from tests.page.conftest import ENGINE, JOBS, asked, images, model, told, with_every_half
from tests.page.test_engine import (  # noqa: F401
    test_a_head_that_is_off_adds_nothing,
    test_attention_states_lens_and_rollout_are_torchs,
    test_every_switch_does_what_remove_does,
    test_logits_are_torchs,
    test_patches_move_and_are_covered_as_images_are,
)
from vitlab.convert.page import export_page, script


@pytest.fixture(scope="module")
def page(browser: Browser, site: str):
    page = browser.new_page()
    page.goto(site + "404.html")
    page.add_script_tag(url=site + "_static/live/engine.js")
    page.add_script_tag(content=JOBS.read_text())
    yield page
    page.close()


def give(page: Page, of: ViT) -> None:
    """Runs a model's script in a page, which then has it in ``minivitModels.model``."""
    page.add_script_tag(content=script(of, "model").decode("utf-16"))


@pytest.fixture
def answers(page):
    run = "(asked) => runJobs(minivitEngine(), minivitModels.model, asked)"

    def answer(of, pictures, jobs):
        give(page, of)
        return told(page.evaluate(run, asked(pictures, jobs)))

    return answer


@pytest.fixture
def many(name: str) -> int:
    """Those that the page shows are compared for as many images as the others have not the time."""
    return 100 if name.startswith(("digits", "cifar10_vit")) else 4


@pytest.mark.parametrize(("name", "milliseconds"), [("digits_vit", 16), ("cifar10_vit", 100)])
def test_an_answer_is_there_before_the_hand_notices(page, name, milliseconds):
    give(page, model(name))
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
