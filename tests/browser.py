"""Chromium, headless and without a network, as a person would open a page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


@contextmanager
def opened_report(path: Path, title: str, **context: Any) -> Iterator[Page]:
    """A report with everything folded out: hostile text in it did nothing, and it fits the width.

    It asked for nothing but itself.
    """
    with opened(path.as_uri(), width=1280, **context) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("window.owned") is None
        assert page.asked == [path.as_uri()]
        assert page.title() == title
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        yield page


def check_one_file(path: Path) -> None:
    """A report is one file without scripts, which links to nothing but the service asked."""
    html = path.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "default-src 'none'" in html
    linked = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert {url for url in linked if "w3.org" not in url} <= {"http://service.example"}
