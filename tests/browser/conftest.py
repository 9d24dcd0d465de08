"""A browser, the built site served to it, and nothing else that it can reach."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from book.tools.address import SITE
from book.tools.chromium import program

OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no other name can be resolved
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # containers allow none
)
# Adds up in `moved` how much of the page has moved by itself, and how far: its layout shift.
MOVED = """self.moved = 0; new PerformanceObserver((list) => list.getEntries().forEach(
    ({ value }) => (moved += value))).observe({ type: "layout-shift", buffered: true })"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line on the terminal for each."""

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    """The address of a server that has a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site, on this machine."""
    if not (SITE / "index.html").is_file():
        pytest.exit(f"not run: no site in {SITE}; build it with `make site`", returncode=1)
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        chromium = program()
    except FileNotFoundError as error:
        pytest.exit(f"not run: {error}", returncode=1)
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=chromium, args=OFFLINE)
        yield chrome
        chrome.close()


@dataclass
class Visit:
    """A page that was opened, and what the browser had to say meanwhile."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Sees to it that nothing went wrong, and that nothing was asked of other hosts."""
        assert self.errors == [] and self.failed == []
        own = (self.address, "data:", "blob:")
        assert [url for url in self.requests if not url.startswith(own)] == []

    def close(self) -> None:
        self.check()
        self.page.close()


def open_page(
    browser: Browser, site: str, name: str, theme: str = "light", width: int = 1280
) -> Visit:
    """Opens a page and waits until its fonts are there."""
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    stored = f"localStorage.setItem(key, '{theme}')"
    page.add_init_script(f"for (const key of ['mode', 'theme']) {stored}")
    page.add_init_script(MOVED)
    visit = Visit(page, site)
    page.on("request", lambda request: visit.requests.append(request.url))
    page.on("requestfailed", lambda request: visit.failed.append(request.url))
    page.on("response", lambda r: visit.failed.append(r.url) if r.status >= 400 else None)
    page.on("console", lambda m: visit.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.goto(site + name, wait_until="networkidle")
    page.evaluate("document.fonts.ready.then(() => null)")
    return visit


@pytest.fixture
def opened(browser: Browser, site: str) -> Iterator[Callable[..., Page]]:
    """Opens pages of the site, each by its name, theme and width, and closes them in the end."""
    pages = []

    def open_one(*view: object) -> Page:
        pages.append(open_page(browser, site, *view).page)
        return pages[-1]

    yield open_one
    for page in pages:
        page.close()


@pytest.fixture
def without_scripts(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def ready(root: Locator) -> Locator:
    """Goes to a model or drawing, which waits for its reader, and waits until it answers."""
    root.scroll_into_view_if_needed()
    expect(root).to_have_attribute("data-ready", "", timeout=60_000)
    return root


def processor(page: Page) -> Callable[[], float]:
    """A clock of the seconds of a processor that a page's thread has had since now.

    What else the machine does is not counted, but slows it: two threads of a core share its units.
    """
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    start = spent()
    return lambda: spent() - start
