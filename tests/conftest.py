"""What holds for every test: one thread a process, for OpenMP spins beside a busy neighbour."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
