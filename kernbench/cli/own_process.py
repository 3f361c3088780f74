"""Settings of a process which is a command and nothing else, from its begin to its exit."""

import gc
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

_NEW_OBJECTS = 100_000
"""New objects between two collections; Python's own 700 cost a command 50 ms of its imports."""


@contextmanager
def own_process() -> Generator[None]:
    """The `with` block is all that this process does before it exits."""
    # Threads of OpenBLAS, the library behind numpy's products, wait for work in a loop: 40 ms as
    # soon as numpy is imported, while the processes of the run need all cores. It reads this when
    # it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_NEW_OBJECTS)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        # `launch.py` has no handler while it imports this package.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        # Python collects more than once when it exits, 60 to 100 ms among objects that the exit of
        # the process frees anyway.
        gc.freeze()
