"""All benchmarks, one after the other; each prints its ratios and limits.

python tests/bench/run.py
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    ("bench_browser.py",),
    ("bench_commands.py",),
    ("bench_compare.py",),
    ("bench_runner.py",),
    ("bench_scoring.py",),
    ("bench_scoring.py", "--cases", "1000000"),
    ("bench_sweep.py",),
    ("bench_weekly.py",),
    ("bench_whatif.py",),
)


def main() -> int:
    """Run every benchmark; 1 when one of them missed a limit."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    codes = []
    for name, *arguments in BENCHMARKS:
        print(f"\n{name} {' '.join(arguments)}".rstrip(), flush=True)
        codes.append(subprocess.run([sys.executable, HERE / name, *arguments]).returncode)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
