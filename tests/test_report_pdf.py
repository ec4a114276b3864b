"""Printing a report: which browser, what it is told, and what a failure leaves behind."""

import subprocess
from pathlib import Path

import pytest

from ragwb.errors import UsageError
from ragwb.report.notebook import ReportError
from ragwb.report.pdf import find_browser, print_pdf


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def printing(content=b"%PDF-1.4", stderr=b""):
    """Stands in for `subprocess.run`: writes where the browser is told to."""
    calls = []

    def call(command, **given):
        calls.append(command)
        target = next(part for part in command if part.startswith("--print-to-pdf="))
        if content is not None:
            Path(target.removeprefix("--print-to-pdf=")).write_bytes(content)
        return subprocess.CompletedProcess(command, 0, b"", stderr)

    return call, calls


def test_the_browser_is_the_one_given_else_the_first_on_the_path(tmp_path):
    chrome = program(tmp_path, "google-chrome")
    assert find_browser({"PATH": str(tmp_path)}) == chrome
    chromium = program(tmp_path, "chromium")
    assert find_browser({"PATH": str(tmp_path)}) == chromium
    given = {"PATH": str(tmp_path), "RAGWB_CHROMIUM": str(chrome)}
    assert find_browser(given) == chrome


def test_without_a_browser_it_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match=r"--pdf needs Chromium: .* set RAGWB_CHROMIUM"):
        find_browser({"PATH": str(tmp_path)})
    with pytest.raises(UsageError, match="RAGWB_CHROMIUM /nowhere: no program there"):
        find_browser({"PATH": str(tmp_path), "RAGWB_CHROMIUM": "/nowhere"})


def test_a_page_is_printed_without_header_into_its_place(tmp_path):
    html, pdf = tmp_path / "a b.html", tmp_path / "a b.pdf"
    html.write_text("<p>周报</p>", encoding="utf-8")
    call, calls = printing()
    print_pdf(html, pdf, Path("/usr/bin/chromium"), call=call)
    assert pdf.read_bytes() == b"%PDF-1.4"
    (command,) = calls
    assert command[0] == "/usr/bin/chromium"
    assert "--no-pdf-header-footer" in command
    assert command[-1] == html.as_uri()


def test_a_browser_that_prints_nothing_leaves_the_old_pdf(tmp_path):
    pdf = tmp_path / "week.pdf"
    pdf.write_bytes(b"old")
    call, _ = printing(content=None, stderr=b"no display\n")
    with pytest.raises(ReportError, match=r"printed nothing of .*: no display"):
        print_pdf(tmp_path / "week.html", pdf, Path("chromium"), call=call)
    assert pdf.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (subprocess.TimeoutExpired("chromium", 120), "did not print .* in 120 s"),
        (OSError(8, "Exec format error"), "Exec format error"),
    ],
)
def test_a_browser_that_fails_is_one_line(tmp_path, fault, said):
    def call(*_, **__):
        raise fault

    with pytest.raises(ReportError, match=said):
        print_pdf(tmp_path / "week.html", tmp_path / "week.pdf", Path("chromium"), call=call)


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    call, _ = printing()
    with pytest.raises(UsageError, match="cannot write"):
        print_pdf(tmp_path / "week.html", tmp_path / "gone" / "week.pdf", Path("x"), call=call)
