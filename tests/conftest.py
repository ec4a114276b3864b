"""What holds for every test: one thread a process, and Ctrl-C that is heard."""

import os
import signal

# OpenMP spins beside a busy neighbour.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A worker of pytest-xdist ignores SIGINT, and so would what it starts; tests press it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)
