"""A browser, the built site served to it, and nothing else that it can reach."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, sync_playwright

from book.tools.chromium import program

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no other name can be resolved
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # containers allow none
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line on the terminal for each."""

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site, on this machine."""
    if not (SITE / "index.html").is_file():
        pytest.exit(f"not run: no site in {SITE}; build it with `make site`", returncode=1)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it, or as the variable CHROME says."""
    try:
        chromium = program()
    except FileNotFoundError as error:
        pytest.exit(f"not run: {error}", returncode=1)
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=chromium, args=OFFLINE)
        yield chrome
        chrome.close()
