"""Chromium as the system has it, for what is printed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright


def program() -> str:
    """Its path: the variable CHROME, or the first that is installed."""
    own = os.environ.get("CHROME")
    names = [own] if own else ["chromium", "chromium-browser", "google-chrome"]
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise FileNotFoundError(f"no Chromium found, looked for {', '.join(names)}")
    return path


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window; a container allows it no sandbox."""
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        yield chrome
        chrome.close()
