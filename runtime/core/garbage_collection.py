"""Makes a run independent of Python's cyclic garbage collector.

Reference counting is deterministic: an object dies at a point of the program. The collector is
not: it runs after some number of allocations anywhere in the process, so its moments depend on the
other SIPs of the LP, on earlier runs in the process, and on settings of `gc`. Nothing simulated may
depend on them. So the collector is off during a run, and a collection that the program itself
requests by `gc.collect()` deletes nothing: it would delete a cycle at one moment in one LP, and at
another moment or never in another.

One collection is a part of the run, `finalise_cycles`, at a point that the simulation decides. It
calls finalisers, and deletes nothing either: the cycles may be those of another SIP of the LP.
Memory of a tensor that is finalised in it is not used again (`TensorMemory`), and a finaliser in it
cannot call the API.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import local


class _Collection(local):
    """Whether this thread is in a collection, and whether that deletes nothing."""

    running = False
    frozen = False


class _Runs:
    """Number of simulations that are running in this process."""

    active = 0


# Module state, which kernbench avoids elsewhere: the collector belongs to the process, and reports
# to `gc.callbacks` only. A state of the thread, since a collection runs in one thread. Not of the
# context: a collection can close a greenlet, which has its own context, and whose locals die then.
_collection = _Collection()


def watch_collections() -> None:
    """Observe the collections of this process from now on."""
    if _observe not in gc.callbacks:
        gc.callbacks.append(_observe)


@contextmanager
def collections_suspended() -> Generator[None]:
    """Collections inside the `with` block delete nothing, in any thread, and none begins by itself:
    it would visit the objects of the chips in vain.
    """
    watch_collections()
    _Runs.active += 1
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _Runs.active -= 1
        if was_enabled:
            # What the run has left becomes old at no cost: else the next collection of new objects
            # would visit all of it.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def finalise_cycles() -> None:
    """Call the finalisers of all objects which only the collector finds, and delete none."""
    active, _Runs.active = _Runs.active, 0
    flags, kept = gc.get_debug(), len(gc.garbage)
    # The collector then keeps what it finds: a deleted cycle would drop its references to objects
    # which a program still uses.
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
    finally:
        gc.set_debug(flags)
        del gc.garbage[kept:]
        _Runs.active = active


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
    if _collection.running and _Runs.active:
        # The collector ignores frozen objects, and they can be frozen at no cost.
        _collection.frozen = True
        gc.freeze()
    elif _collection.frozen:
        _collection.frozen = False
        gc.unfreeze()
