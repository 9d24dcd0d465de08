"""The page's engine in a real browser, beside its tests under Node: its speed, and its files."""

import pytest
import torch

from tests.browser.conftest import Quiet, processor, served
from tests.page.conftest import ENGINE, images, model, with_every_half
from vitlab.convert.page import export_page, script


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
