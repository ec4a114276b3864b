"""A weekly report of a year: 52 runs of 500 cases, from the saved runs to one HTML page.

What is measured is `ragwb weekly` as people wait for it, its kernel's start included, and the size
of the page. Beside it the share that reads and measures the runs.

    python tests/bench/bench_weekly.py
    python tests/bench/bench_weekly.py --weeks 12

Ends with 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # what the tests share

LIMITS = {"page s": 60.0, "page MB": 3.0}
N_CASES, DEPTH = 500, 20


def measure(folder: Path, n_weeks: int) -> dict[str, float]:
    """The seconds that a period and its page take, and the page's size."""
    from weekly_data import settings, store, year

    from ragwb.decide.weekly.period import period
    from ragwb.report.weekly import write_weekly

    store(folder, year(n_weeks), n_cases=N_CASES, depth=DEPTH)
    os.environ["RAGWB_HOME"] = str(settings(folder).home)
    os.chdir(folder)
    days = {"since": "2026-01-01", "until": "2026-12-31"}
    started = time.perf_counter()
    period(settings(folder), **days)
    measured = time.perf_counter()
    files = write_weekly(folder / "page", days)
    ended = time.perf_counter()
    return {
        "runs s": measured - started,
        "page s": ended - measured,
        "page MB": files.html.stat().st_size / 1e6,
    }


def main() -> int:
    """Measure once and print; 1 when a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weeks", type=int, default=52)
    n_weeks = parser.parse_args().weeks
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), n_weeks)
    print(f"{n_weeks} runs of {N_CASES} cases")
    missed = False
    for name, value in found.items():
        limit = LIMITS.get(name)
        missed |= limit is not None and value > limit
        words = "" if limit is None else f"  at most {limit:g}{' MISSED' if value > limit else ''}"
        print(f"{name:>8}  {value:8.2f}{words}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
