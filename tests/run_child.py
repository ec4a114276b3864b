"""A run in a process of its own, for tests that kill it or take its disk away.

    python run_child.py BASE_URL FOLDER [LARGEST_FILE_BYTES [sealing]]

The golden set stands in FOLDER; an error is printed as one line, exit code 2. With `sealing` files
are limited from the last answer on, so that the journal is whole.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from run_data import settings

from ragwb.errors import RagwbError
from ragwb.golden.dataset import load_dataset
from ragwb.runs.runner import run_retrieval

base_url, folder = sys.argv[1], Path(sys.argv[2])
dataset = load_dataset(folder / "golden.jsonl")
limited_from = 0 if sys.argv[4:] == [] else len(dataset.cases)


def limit_files(done: int, _: int = 0) -> None:
    """Let no file grow any more, as on a full disk, from a number of answers on."""
    if sys.argv[3:] and done >= limited_from:
        limit = (int(sys.argv[3]), resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


limit_files(0)
here = settings(folder, base_url=base_url)
try:
    run_retrieval(dataset, here, top_k=5, concurrency=2, on_progress=limit_files)
except RagwbError as error:
    print(error)
    sys.exit(2)
