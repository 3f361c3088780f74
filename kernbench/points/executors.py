from collections.abc import Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

LOCAL = "local"


@contextmanager
def open_executor(on: str, procs: int) -> Generator[Executor]:
    """The executor."""
    with ThreadPoolExecutor(procs) as executor:
        yield executor
