"""What holds for every test: one thread a process, and Ctrl-C that is heard."""

import os
import signal

import pytest

# OpenMP spins beside a busy neighbour.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A worker of pytest-xdist ignores SIGINT, and so would what it starts; tests press it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that quick ones keep both processes busy to the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
