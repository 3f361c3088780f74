"""Detects that Python's cyclic garbage collector is running.

Reference counting is deterministic: an object dies at a point of the program. The collector is
not: it runs after some number of allocations anywhere in the process, so its moments depend on the
other SIPs of the LP, on earlier runs in the process, and on settings of `gc`. Nothing simulated may
depend on them. So memory of a tensor that dies during a collection is not used again
(`TensorMemory`), and a finaliser that the collector runs cannot call the API.
"""

import gc
from threading import local


class _Collection(local):
    """Whether this thread is in a collection."""

    running = False


# Module state, which kernbench avoids elsewhere: the collector belongs to the process, and reports
# to `gc.callbacks` only. A state of the thread, since a collection runs in one thread. Not of the
# context: a collection can close a greenlet, which has its own context, and whose locals die then.
_collection = _Collection()


def watch_collections() -> None:
    """Observe the collections of this process from now on."""
    if _observe not in gc.callbacks:
        gc.callbacks.append(_observe)


def is_collecting() -> bool:
    """Whether this thread is in a collection; always False before `watch_collections`."""
    return _collection.running


def refuse_in_collection() -> None:
    """`RuntimeError` in a finaliser that the collector runs, for calls that change the run."""
    if _collection.running:
        raise RuntimeError(
            "a finaliser called kernbench during a garbage collection, at a moment that does not "
            "depend on the program alone; call it from the program, or break the reference cycle "
            "of the object"
        )


def _observe(phase: str, _info: dict[str, int]) -> None:
    _collection.running = phase == "start"
