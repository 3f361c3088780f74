"""The fork server of the tests outlives what happens to its forks."""

import os
from collections.abc import Sequence

from tests.support.forks import Fork, ForkServer

PAUSE = ("-m", "timeit", "-n", "1", "-r", "1", "-s", "import time", "time.sleep(0.5)")
NOTHING = ("-m", "timeit", "-n", "1", "-r", "1", "pass")


def forked(server: ForkServer, command: Sequence[str]) -> Fork:
    return server.fork(command, dict(os.environ), streams=None)


def test_a_fork_that_is_dropped_before_its_end_ends_no_other_one() -> None:
    server = ForkServer(dict(os.environ), "")
    # No reader of its exit code is left.
    forked(server, PAUSE)
    assert forked(server, PAUSE).wait(60) == 0
    # The first one has ended by now.
    assert forked(server, NOTHING).wait(60) == 0


def test_a_signal_to_a_fork_that_has_ended_does_nothing() -> None:
    server = ForkServer(dict(os.environ), "")
    fork = forked(server, NOTHING)
    assert fork.wait(60) == 0
    fork.kill()
    assert fork.wait(0) == 0
