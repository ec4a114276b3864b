"""Chromium, headless and without a network, as a person would open a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@contextmanager
def opened(url: str, *, width: int = 1280, height: int = 900, **context: Any) -> Iterator[Page]:
    """A page on a URL; `page.asked` lists every address it asked for beside its own."""
    path = shutil.which("chromium")
    assert path, "chromium is missing: make browser installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": height}, **context)
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(url)
        try:
            yield page
        finally:
            browser.close()
