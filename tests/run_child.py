"""A run in a process of its own, for tests that kill it or take its disk away.

    python run_child.py BASE_URL FOLDER [LARGEST_FILE_BYTES]

The golden set stands in FOLDER; an error is printed as one line, exit code 2.
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
if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    run_retrieval(dataset, settings(folder, base_url=base_url), top_k=5, concurrency=2)
except RagwbError as error:
    print(error)
    sys.exit(2)
