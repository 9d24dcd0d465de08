"""The page's engine in a real browser: what tests/page asks of it under Node, and its speed."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from minivit.hub.page import packed
from tests.page.conftest import asked, images, model, told
from tests.page.test_engine import (  # noqa: F401
    test_a_head_that_is_off_adds_nothing,
    test_attention_states_lens_and_rollout_are_torchs,
    test_every_switch_does_what_remove_does,
    test_logits_are_torchs,
    test_patches_move_and_are_covered_as_images_are,
)

JOBS = Path(__file__).parents[1] / "page/jobs.js"


@pytest.fixture(scope="module")
def page(browser: Browser, site: str):
    page = browser.new_page()
    page.goto(site + "404.html")
    page.add_script_tag(url=site + "_static/live/engine.js")
    page.add_script_tag(content=JOBS.read_text())
    yield page
    page.close()


@pytest.fixture
def answers(page):
    run = "([text, asked]) => runJobs(minivitEngine(), text, JSON.parse(asked))"

    def answer(of, pictures, jobs):
        text = base64.b64encode(packed(of)).decode()
        return told(page.evaluate(run, [text, asked(pictures, jobs)]))

    return answer


@pytest.fixture
def many(name: str) -> int:
    """Those that the page shows are compared for as many images as the others have not the time."""
    return 100 if name.startswith(("digits", "cifar10_vit")) else 4


@pytest.mark.parametrize(("name", "milliseconds"), [("digits_vit", 16), ("cifar10_vit", 100)])
def test_an_answer_is_there_before_the_hand_notices(page, name, milliseconds):
    """Of a processor: what else the machine does at the time is not counted."""
    text = base64.b64encode(packed(model(name))).decode()
    pixels = images(model(name), 1)[0].permute(1, 2, 0).flatten().tolist()
    page.evaluate(
        """([text, pixels]) => {
            const engine = minivitEngine(), model = engine.open(text);
            const image = engine.normalised(model, pixels);
            globalThis.answer = (n) => { while (n--) engine.forward(model, image); };
            answer(10);
        }""",
        [text, pixels],
    )
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = spent(session)
    page.evaluate("answer(20)")
    assert 0 < (spent(session) - before) / 20 * 1000 < milliseconds


def spent(session) -> float:
    """Seconds of a processor that the page's thread has had."""
    found = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in found if one["name"] == "TaskDuration")
