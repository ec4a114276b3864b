"""Print a report on A4 with the Chromium that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ragwb.errors import UsageError
from ragwb.files import write_whole
from ragwb.html import plain
from ragwb.report.notebook import ReportError

BROWSER = "RAGWB_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 120
# It prints a file that reaches for nothing, and must not phone home while it does.
_FLAGS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    *("--no-pdf-header-footer", "--virtual-time-budget=10000"),
)

Call = Callable[..., "subprocess.CompletedProcess[bytes]"]


def find_browser(environ: Mapping[str, str] = os.environ) -> Path:
    """The Chromium that prints: `$RAGWB_CHROMIUM`, else the first of `NAMES` on the path.

    Raises:
        UsageError: there is none, or the variable names no program.
    """
    given = environ.get(BROWSER)
    if given:
        found = shutil.which(given, path=environ.get("PATH"))
        if found is None:
            raise UsageError(f"{BROWSER} {plain(given)}: no program there")
        return Path(found)
    for name in NAMES:
        if found := shutil.which(name, path=environ.get("PATH", "")):
            return Path(found)
    raise UsageError(
        f"--pdf needs Chromium: none of {', '.join(NAMES)} is on the PATH; install one, or set "
        f"{BROWSER} to its path"
    )


def print_pdf(html: Path, pdf: Path, browser: Path, *, call: Call = subprocess.run) -> None:
    """Print an HTML file as PDF; a PDF that is there stays until the new one is whole.

    Args:
        html: the report.
        pdf: what is written; its folder must be there.
        browser: a Chromium (see `find_browser`).
        call: runs a program, as `subprocess.run` does.

    Raises:
        ReportError: the browser failed, took too long, or wrote nothing.
    """
    with tempfile.TemporaryDirectory(prefix="ragwb-") as scratch:
        printed = Path(scratch) / "report.pdf"
        command = [
            str(browser),
            *_FLAGS,
            # A root user, as in a container, has no sandbox; the page is our own, without scripts.
            *(["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []),
            f"--user-data-dir={scratch}/profile",
            f"--print-to-pdf={printed}",
            html.resolve().as_uri(),
        ]
        try:
            done = call(command, capture_output=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ReportError(f"{browser} did not print {html} in {_SECONDS} s") from error
        except OSError as error:
            raise ReportError(f"{browser}: {error.strerror}") from error
        if not printed.is_file():
            said = plain(done.stderr.decode("utf-8", "replace"), width=200)
            raise ReportError(f"{browser} printed nothing of {html}: {said or done.returncode}")
        try:
            write_whole(pdf, printed.read_bytes())
        except OSError as error:
            raise UsageError(f"cannot write {pdf}: {error.strerror}") from error
