"""A run in a process of its own, for tests that kill it or take its disk away.

    python run_child.py BASE_URL FOLDER [LARGEST_FILE_BYTES [sealing]]
    python run_child.py BASE_URL FOLDER answers

With `answers` it asks for answers, else for retrievals. The golden set stands in FOLDER; an error
is printed as one line, exit code 2. With `sealing` files
are limited from the last answer on, so that the journal is whole.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from run_data import settings

from ragwb.errors import RagwbError
from ragwb.golden.dataset import load_dataset
from ragwb.runs.runner import run_answers, run_retrieval

base_url, folder = sys.argv[1], Path(sys.argv[2])
dataset = load_dataset(folder / "golden.jsonl")
largest = [word for word in sys.argv[3:4] if word != "answers"]
make = run_retrieval if largest or not sys.argv[3:] else run_answers
limited_from = 0 if sys.argv[4:] == [] else len(dataset.cases)


def limit_files(done: int, _: int = 0) -> None:
    """Let no file grow any more, as on a full disk, from a number of answers on."""
    if largest and done >= limited_from:
        limit = (int(largest[0]), resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


limit_files(0)
here = settings(folder, base_url=base_url)
try:
    make(dataset, here, top_k=5, concurrency=2, on_progress=limit_files)
except RagwbError as error:
    print(error)
    sys.exit(2)
