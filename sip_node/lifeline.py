"""Ends an LP when its coordinator has ended: no LP outlives its run.

A daemon thread watches for the end and exits this process at once. The thread works while the main
thread computes or waits for a peer that will never send, which is why the control protocol alone
cannot do this.
"""

import os
from collections.abc import Callable
from threading import Event, Thread

from runtime.core.wallclock import sleep_s
from runtime.wire.environment import coordinator_pid
from sip_node.ending import Ending

_PERIOD_S = 0.2


def follow_parent(ending: Ending) -> None:
    """End this process soon after the coordinator that started it.

    Without effect in an LP that joined by hand.
    """
    pid = coordinator_pid()
    if pid is not None:
        follow(lambda: "its coordinator has ended" if is_orphan(pid) else "", ending)


def follow(gone: Callable[[], str], ending: Ending, released: Event | None = None) -> Thread:
    """End this process when `gone()` returns a reason, unless `released` is set first.

    `gone` is called in a loop; each call may block for a fraction of a second. The returned thread
    ends when `released` is set.
    """
    thread = Thread(
        target=_end_with, args=(gone, ending, released or Event()), name="lifeline", daemon=True
    )
    thread.start()
    return thread


def is_orphan(pid: int) -> bool:
    """Whether the parent `pid` of this process has ended; it blocks for a moment if not."""
    # An orphan is adopted by init or a subreaper. A test whether `pid` still exists would fail when
    # the number is used again.
    if os.getppid() != pid:
        return True
    sleep_s(_PERIOD_S)
    return False


def _end_with(gone: Callable[[], str], ending: Ending, released: Event) -> None:
    while not (reason := gone()):
        if released.is_set():
            return
    if not released.is_set():
        ending.at_once(reason)
