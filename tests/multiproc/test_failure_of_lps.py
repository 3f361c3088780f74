import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread, Timer

import pytest

from coordinator.launch.launcher import SpawnLauncher
from coordinator.session import Session
from coordinator.watch.failure import Interrupted, LpDied, LpSilent, RankFailed, RunStalled
from runtime.core.errors import IpcqDeadlock, ProtocolError
from tests.support.scripted_lp import TIME_PS
from tests.support.sessions import (
    ROOT,
    Recorder,
    fake_launcher,
    is_running,
    plan,
    run_fakes,
    wait_until_gone,
)

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]
LIMIT_S = 5.0


def fail(*behaviours: str, timeout_s: float = 30.0):
    result, recorder = run_fakes(*behaviours, timeout_s=timeout_s)
    assert not any(is_running(pid) for pid in recorder.pids)
    assert recorder.has_ended
    return result


def test_a_rank_that_raises_ends_the_run_with_its_traceback_and_time():
    error = fail("waits", "raises").error
    assert isinstance(error, RankFailed)
    assert error.failed.rank == 1
    assert error.lines == "Traceback (most recent call last):\nValueError: rank refuses\n"
    assert str(error) == "rank 1 raised ValueError at 5.000 ns: rank refuses"


def test_records_before_a_failure_are_kept():
    assert fail("waits", "raises").collected.logs.records()[1]


@pytest.mark.parametrize(
    ("behaviour", "code", "cause"),
    [("dies", -9, "was killed by SIGKILL"), ("exits", 3, "exited with code 3")],
)
def test_an_lp_that_ends_on_its_own_is_named_with_ranks_cause_and_time(
    behaviour: str, code: int, cause: str
):
    error = fail("waits", behaviour).error
    assert isinstance(error, LpDied)
    assert (error.process.lp, error.process.sips, error.exit_code, error.time_ps) == (
        1,
        (1,),
        code,
        TIME_PS,
    )
    assert cause in str(error)
    assert "LP 1 (rank 1, pid" in str(error)


def test_an_lp_that_dies_before_it_joins_does_not_keep_the_others_waiting():
    error = fail("normal", "dies_before_hello").error
    assert isinstance(error, LpDied)
    assert error.signal_name == "SIGKILL"


def test_an_lp_that_never_joins_is_ended_at_the_time_limit():
    error = fail("waits", "never_joins", timeout_s=5.0).error
    assert isinstance(error, LpSilent)
    assert (error.process.lp, error.due) == (1, "Hello")


def test_an_lp_that_hangs_is_ended_and_distinguished_from_one_that_waits_for_it():
    error = fail("waits", "hangs", timeout_s=5.0).error
    assert isinstance(error, LpSilent)
    assert (error.process.lp, error.due) == (1, "Status")
    assert "This is not a deadlock of queues" in str(error)
    assert error.others is not None
    [other] = error.others
    pattern = (
        r"LP 0 \(rank 0, pid \d+\) has stood at 5\.000 ns for \d\.\d s: "
        r"its next event is at 10\.000 ns, and it waits for LP 1, "
        r"which may still send from 5\.000 ns on"
    )
    assert re.fullmatch(pattern, other)


def test_lps_that_all_wait_for_promises_are_a_stalled_run_that_names_the_peer_of_each():
    error = fail("waits", "waits", timeout_s=5.0).error
    assert isinstance(error, RunStalled)
    assert str(error).startswith(
        "simulated time has stood at 5.000 ns for 5 s, the limit set by --timeout, though every LP"
    )
    assert [re.sub(r"\(.*?\)| for [\d.]+ s", "", line) for line in error.lps] == [
        f"LP {lp}  has stood at 5.000 ns: its next event is at 10.000 ns, "
        f"and it waits for LP {1 - lp}, "
        "which may still send from 5.000 ns on"
        for lp in (0, 1)
    ]


def test_an_lp_that_ignores_every_request_to_stop_is_killed():
    assert isinstance(fail("raises", "hangs_stubbornly").error, RankFailed)


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("malformed", "malformed message"),
        ("malformed_trace", "malformed message"),
        ("sends_as_another_lp", "it sends as LP 2"),
        ("reports_foreign_memories", "it reports SIPs (2,), it holds (1,)"),
        ("writes_for_foreign_hosts", "it reports SIPs (2,), it holds (1,)"),
        ("reports_foreign_sips", "it reports SIPs (2,), it holds (1,)"),
        ("wrong_protocol", "it uses protocol 99"),
        ("wrong_hash", "its config hash is 0123456789abcdef"),
    ],
)
def test_an_lp_that_breaks_the_protocol_ends_the_run_by_name(behaviour: str, problem: str):
    error = fail("waits", behaviour).error
    assert isinstance(error, ProtocolError)
    assert error.peer == "LP 1"
    assert problem in error.problem


def test_a_deadlock_names_every_blocked_pe_and_every_waiting_rank():
    error = fail("deadlocks").error
    assert isinstance(error, IpcqDeadlock)
    assert error.time_ps == TIME_PS
    assert str(error).splitlines() == [
        "IpcqDeadlock at 5.000 ns: no event is left; 2 PEs and 2 ranks wait forever",
        "  cycle: sip 0 cube 3 pe 1 recv E -> sip 1 cube 3 pe 1 recv E -> (back)",
        "  sip 0 cube 3 pe 1: kernel 'ring' recv E (sip 1 cube 3 pe 1) since 5.000 ns",
        "  sip 1 cube 3 pe 1: kernel 'ring' recv E (sip 0 cube 3 pe 1) since 5.000 ns",
        "  rank 0: waits for all_reduce",
        "  rank 1: waits for all_reduce",
    ]


def test_an_lp_that_ends_badly_after_its_report_fails_the_run():
    result = fail("normal", "ends_badly")
    assert isinstance(result.error, LpDied)
    assert result.error.exit_code == 5
    assert result.is_complete
    assert str(result.error).endswith(
        "exited with code 5 after the end of the run; the results are complete"
    )


def test_an_lp_that_exits_slowly_after_its_report_is_killed_and_fails_nothing():
    recorder = Recorder()
    launcher = fake_launcher("normal", "exits_slowly")
    result = Session(plan(exit_s=1.0), launcher, recorder).run()
    assert result.error is None
    assert result.is_complete
    (slow,) = result.slow_exits
    assert slow.process.lp == 1
    assert re.fullmatch(
        r"LP 1 \(rank 1, pid \d+\) has not exited 1\.\d s after the end of the run and is killed; "
        "the results are complete",
        str(slow),
    )
    assert not any(is_running(pid) for pid in recorder.pids)


def _keep_the_process(_: int) -> None:
    # Python waits at its exit for a thread that is no daemon.
    Thread(target=Event().wait).start()


def test_a_spawned_process_that_exits_slowly_has_no_exit_code_that_fails_the_run():
    launcher = SpawnLauncher(_keep_the_process, (), entry="tests.support.fake_lp:enter")
    result = Session(plan(exit_s=0.3), launcher, Recorder()).run()
    assert result.error is None
    assert [slow.process.lp for slow in result.slow_exits] == [0, 1]


def test_a_deadlock_is_the_error_also_if_a_process_exits_badly():
    assert isinstance(fail("deadlocks", "ends_badly").error, IpcqDeadlock)


def test_a_session_is_stopped_from_another_thread():
    recorder = Recorder()
    session = Session(plan(), fake_launcher("waits"), recorder)
    timer = Timer(0.3, session.stop)
    timer.start()
    error = session.run().error
    timer.join()
    assert isinstance(error, Interrupted)
    assert error.signum == signal.SIGINT
    assert not any(is_running(pid) for pid in recorder.pids)


class Broken(Recorder):
    def status(self, status, sips):
        raise ZeroDivisionError


def test_an_error_of_the_coordinator_itself_leaves_nothing_behind():
    recorder = Broken()
    with pytest.raises(ZeroDivisionError):
        Session(plan(), fake_launcher("waits"), recorder).run()
    assert not any(is_running(pid) for pid in recorder.pids)


COORDINATOR = """
import sys
from coordinator.session import Session
from tests.support.sessions import Recorder, fake_launcher, plan

class Announcing(Recorder):
    def status(self, status, sips):
        super().status(status, sips)
        if len({s.lp for s, _ in self.statuses}) == 2:
            print(*self.pids, flush=True)

result = Session(plan(), fake_launcher(*sys.argv[1:]), Announcing()).run()
print(result.error, [slow.waited_s for slow in result.slow_exits], file=sys.stderr)
"""


def start_coordinator(tmp_path: Path, *behaviours: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A coordinator in its own process, and the pids of its LPs as soon as all of them run."""
    process = subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, *behaviours],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, [int(pid) for pid in process.stdout.readline().split()]


def test_when_the_coordinator_is_killed_its_lps_and_its_directory_go_too(tmp_path: Path):
    process, pids = start_coordinator(tmp_path, "waits", "hangs_stubbornly")
    assert len(pids) == 2
    assert len(list(tmp_path.glob("kernbench-*"))) == 1
    process.kill()
    process.communicate()
    assert all(wait_until_gone(pid, LIMIT_S) for pid in pids)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_coordinator_ends_all_within_five_seconds(
    tmp_path: Path, signum: signal.Signals
):
    process, pids = start_coordinator(tmp_path, "waits", "hangs_stubbornly")
    process.send_signal(signum)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert f"stopped by {signum.name}" in errors
    assert not any(is_running(pid) for pid in pids)


def test_ctrl_c_while_processes_exit_ends_the_wait_and_keeps_the_results(tmp_path: Path):
    process, _ = start_coordinator(tmp_path, "normal", "interrupts_and_exits_slowly")
    _, errors = process.communicate()
    # The first LP may or may not have exited when the signal arrives.
    error, *waited_s = re.findall(r"None|[\d.]+", errors)
    assert error == "None"
    assert waited_s
    assert all(float(each) < plan().exit_s for each in waited_s)
