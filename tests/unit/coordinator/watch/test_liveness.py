"""Hung and stalled LPs, from messages and wall times that the test gives."""

import pytest

from coordinator.watch.failure import LpProcess
from coordinator.watch.liveness import Liveness
from coordinator.watch.processor_time import ProcessorTime
from runtime.core.simtime import NEVER_PS
from runtime.wire.control import Status, Written

PROCESSES = (LpProcess(0, (0,), 10), LpProcess(1, (1, 2), 11))
LIMIT_S = 5.0


def waiting(lp: int, *, next_ps: int = 9_000, time_ps: int = 3_000, events: int = 7) -> Status:
    return Status(lp, time_ps, events, 0.0, next_ps, 8_000, 1 - lp)


def test_an_lp_hangs_when_it_sends_no_message_for_longer_than_the_limit() -> None:
    liveness = Liveness(2, 100.0)
    liveness.received(0, waiting(0), 104.0)
    assert liveness.hung([0, 1], LIMIT_S, 105.0) is None
    assert liveness.hung([0, 1], LIMIT_S, 105.1) == 1
    assert liveness.hung([0], LIMIT_S, 105.1) is None


def test_lps_that_repeat_one_status_for_longer_than_the_limit_are_stalled() -> None:
    liveness = Liveness(2, 100.0)
    for now_s in (101.0, 103.0, 105.0, 107.0):
        for lp in (0, 1):
            liveness.received(lp, waiting(lp), now_s)
    assert not liveness.stalled([0, 1], LIMIT_S, 106.0)
    assert liveness.stalled([0, 1], LIMIT_S, 106.1)
    assert liveness.hung([0, 1], LIMIT_S, 106.1) is None


def test_a_run_in_which_one_lp_makes_progress_is_not_stalled() -> None:
    liveness = Liveness(2, 100.0)
    for lp in (0, 1):
        liveness.received(lp, waiting(lp), 101.0)
    liveness.received(1, waiting(1, events=8), 104.0)
    assert not liveness.stalled([0, 1], LIMIT_S, 108.0)
    assert liveness.stalled([0], LIMIT_S, 108.0)


def test_any_message_other_than_a_status_is_progress() -> None:
    liveness = Liveness(1, 100.0)
    liveness.received(0, waiting(0), 101.0)
    liveness.received(0, Written(0, 0, b"x"), 104.0)
    assert not liveness.stalled([0], LIMIT_S, 108.0)


def test_a_run_whose_lps_are_all_done_is_not_stalled() -> None:
    assert not Liveness(1, 100.0).stalled([], LIMIT_S, 1000.0)


def used(own_s: float, descendants_s: float = 0.0) -> ProcessorTime:
    return ProcessorTime(own_s, descendants_s)


def spent(liveness: Liveness, lp: int, rate: float, *, starting: bool) -> None:
    """LP `lp` is silent from 100 s to 130 s, and uses `rate` of a core."""
    for now_s in range(100, 131):
        liveness.used({lp: used(5.0 + rate * (now_s - 100))}, float(now_s), starting=starting)


@pytest.mark.parametrize(("rate", "hangs"), [(1.0, False), (0.02, False), (0.005, True), (0, True)])
def test_an_lp_that_starts_hangs_only_if_it_uses_no_processor_time(rate: float, hangs: bool):
    liveness = Liveness(2, 100.0)
    liveness.received(1, waiting(1), 129.0)
    spent(liveness, 0, rate, starting=True)
    assert liveness.hung([0, 1], LIMIT_S, 130.0) == (0 if hangs else None)
    assert liveness.stalled([0], LIMIT_S, 130.0) == hangs


def test_an_lp_that_starts_may_wait_for_the_build_of_another_one() -> None:
    liveness = Liveness(2, 100.0)
    for now_s in range(100, 131):
        times = {0: used(1.0), 1: used(float(now_s))}
        liveness.used(times, float(now_s), starting=True)
    assert liveness.hung([0, 1], LIMIT_S, 130.0) is None
    # LP 1 is ready, and LP 0 waits for nothing any more.
    for now_s in range(131, 137):
        liveness.used({0: used(1.0)}, float(now_s), starting=True)
    assert liveness.hung([0], LIMIT_S, 136.0) == 0


def test_during_a_run_an_lp_that_computes_in_silence_is_ended_at_the_limit() -> None:
    liveness = Liveness(1, 100.0)
    spent(liveness, 0, 1.0, starting=False)
    assert liveness.hung([0], LIMIT_S, 130.0) == 0
    assert liveness.used_in_silence_s(0) == 30.0


def test_during_a_run_an_import_is_limited_only_if_it_uses_no_processor_time() -> None:
    for rate, hung in ((1.0, None), (0.0, 0)):
        liveness = Liveness(1, 100.0)
        liveness.imports(0, imports=True)
        spent(liveness, 0, rate, starting=False)
        assert liveness.hung([0], LIMIT_S, 130.0) == hung
        # Its next message ends the import.
    liveness.received(0, waiting(0), 130.0)
    liveness.used({0: used(90.0)}, 140.0, starting=False)
    assert liveness.hung([0], LIMIT_S, 140.0) == 0


def test_during_a_run_an_lp_whose_child_processes_compile_is_not_hung() -> None:
    liveness = Liveness(1, 100.0)
    for now_s in range(100, 131):
        liveness.used({0: used(1.0, now_s / 2)}, float(now_s), starting=False)
    assert liveness.hung([0], LIMIT_S, 130.0) is None
    assert liveness.hung([0], LIMIT_S, 135.1) == 0


def test_an_lp_is_silent_after_a_second_without_a_message() -> None:
    liveness = Liveness(2, 100.0)
    liveness.received(1, waiting(1), 100.5)
    assert liveness.silent([0, 1], 101.2) == [0]


def test_restart_begins_all_time_limits_anew() -> None:
    liveness = Liveness(2, 100.0)
    liveness.restart(200.0)
    assert liveness.hung([0, 1], LIMIT_S, 205.0) is None
    assert not liveness.stalled([0, 1], LIMIT_S, 205.0)


def test_the_states_name_lps_that_wait_lps_that_execute_and_silent_lps() -> None:
    liveness = Liveness(2, 100.0)
    liveness.received(0, waiting(0), 101.0)
    liveness.received(0, waiting(0), 103.5)
    liveness.received(1, waiting(1, next_ps=7_000), 103.5)
    assert list(liveness.states(PROCESSES, 104.0)) == [
        (
            "LP 0 (rank 0, pid 10) has stood at 3.000 ns for 3.0 s: its next event is at 9.000 ns, "
            "and it waits for LP 1, which may still send from 8.000 ns on"
        ),
        "LP 1 (ranks 1-2, pid 11) executes events at 3.000 ns",
    ]
    liveness.received(0, waiting(0, next_ps=NEVER_PS), 109.5)
    first, second = liveness.states(PROCESSES, 110.0)
    assert "it has no event, and it waits for LP 1" in first
    assert second == "LP 1 (ranks 1-2, pid 11) has been silent for 6.5 s"
