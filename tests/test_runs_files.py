from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ragwb.errors import RunError
from ragwb.runs.files import disk_faults


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "make room, then start again"),
        (errno.EROFS, "make it writable, then start again"),
        (errno.EACCES, "make it writable, then start again"),
    ],
)
def test_the_advice_fits_the_fault(tmp_path: Path, code: int, remedy: str) -> None:
    with pytest.raises(RunError, match=remedy), disk_faults(tmp_path, "start again"):
        raise OSError(code, "no")
