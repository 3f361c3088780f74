import os
from pathlib import Path

import pytest

from coordinator.launch.launcher import SpawnLauncher
from coordinator.report.aggregate import merge_outcomes, run_digest, sip_reports, summarise
from coordinator.session import Session
from coordinator.watch.collected import Collected
from runtime.wire.fields import MAX_CONTROL_BYTES
from tests.support.scripted_lp import EVENTS, TIME_PS, digest_of
from tests.support.sessions import Recorder, fake_launcher, is_running, plan, run_fakes

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_a_session_collects_the_reports_and_op_logs_of_all_sips():
    result, recorder = run_fakes("normal", sips=3)
    assert result.error is None
    assert [report.sip for report in sip_reports(result.collected.done)] == [0, 1, 2]
    merged = [(op.record.start_ps, op.sip, op.index) for op in result.collected.logs.merged()]
    assert merged == [(0, 0, 0), (100, 0, 1), (100, 1, 0), (100, 1, 1), (100, 2, 1), (200, 2, 0)]
    assert recorder.has_ended
    assert not any(is_running(pid) for pid in recorder.pids)


def test_the_report_of_a_session_holds_its_statistics_and_passes():
    result, _ = run_fakes("normal", sips=2)
    report = summarise(plan(2), result)
    assert (report.passed, report.error, report.sips, report.procs) == (True, None, 2, 2)
    assert report.digest == run_digest(sip_reports(result.collected.done))
    assert [rank.digest for rank in report.ranks] == [digest_of(0), digest_of(1)]
    assert report.events == 2 * EVENTS
    assert report.sim_time_ns == TIME_PS / 1000
    assert (report.sync.rounds, report.sync.messages, report.sync.null_messages) == (10, 40, 60)
    outcome = merge_outcomes(sip_reports(result.collected.done))
    assert outcome is not None
    assert (outcome.ok, outcome.rows[0].time_ps) == (32, 2_000_001)


def test_status_messages_reach_the_observer_with_the_sips_of_the_lp():
    _, recorder = run_fakes("normal", sips=2)
    assert {(status.lp, sips) for status, sips in recorder.statuses} == {(0, (0,)), (1, (1,))}


def test_a_report_beyond_the_limit_of_the_socket_arrives_whole():
    result, _ = run_fakes("normal", "reports_at_length", timeout_s=5.0)
    assert result.error is None
    [report] = result.collected.done[1].sips
    assert report.outcome is not None
    assert len(report.outcome.label) == 4 * MAX_CONTROL_BYTES


class _Files:
    """The files of a run, which remember what has happened."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def launched(self) -> None:
        self.events.append("launched")

    def collected(self, collected: Collected) -> None:
        self.events.append(f"collected {sorted(collected.done)}")


@pytest.mark.parametrize(
    ("behaviour", "events"),
    [("normal", ["launched", "collected [0, 1]"]), ("wrong_hash", ["launched"])],
)
def test_the_files_begin_at_the_launch_before_the_lps_are_ready_and_get_the_results_of_a_whole_run(
    behaviour: str, events: list[str]
):
    files = _Files()
    Session(plan(2), fake_launcher("normal", behaviour), Recorder(), files).run()
    assert files.events == events


def test_a_stranger_is_refused_and_the_run_goes_on():
    result, _ = run_fakes("brings_a_stranger", "normal")
    assert result.error is None


def _write_pid(rank: int, directory: str) -> None:
    Path(directory, str(rank)).write_text(str(os.getpid()))


@pytest.mark.parametrize("procs", [1, 2])
def test_a_spawned_function_runs_on_every_rank(tmp_path: Path, procs: int):
    launcher = SpawnLauncher(_write_pid, (str(tmp_path),), entry="tests.support.fake_lp:enter")
    result = Session(plan(2, procs), launcher, Recorder()).run()
    assert result.error is None
    pids = [int((tmp_path / str(rank)).read_text()) for rank in (0, 1)]
    assert list(dict.fromkeys(pids)) == [process.pid for process in launcher.processes]
