"""Output of a run: report, progress, files of the run directory."""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.plan import ProgramSpec
from coordinator.report import tables
from coordinator.report.aggregate import summarise
from coordinator.report.background import Writing
from coordinator.report.files import prepare_directory, write_logs
from coordinator.report.progress import MOST_SHARES, Pace, PlainProgress, progress
from coordinator.report.run_directory import RunFiles
from coordinator.report.tables import heading, nccl_table, pass_line, run_statistics
from coordinator.session import RunResult
from coordinator.verify.verdict import MemoryStatistics, Verdict
from coordinator.watch.collected import Collected
from coordinator.watch.op_logs import OpLogs
from runtime.core.bench_registry import BenchOutcome, PerfRow
from runtime.core.errors import UsageError
from runtime.core.trace import Operand, OpRecord
from runtime.wire.control import Done, Status
from runtime.wire.reports import BlockedPe, SipReport
from tests.support.sessions import plan


def result(
    sips: int = 2,
    wrong: int = 0,
    error: UsageError | None = None,
    outcome: BenchOutcome | None = None,
) -> RunResult:
    outcome = outcome or BenchOutcome("x", 16 - wrong, wrong)
    reports = [SipReport(sip, f"{sip}", 5_000, True, outcome, {}, (), "") for sip in range(sips)]
    done = {sip: Done(sip, (reports[sip],), 500, 10, 20, 30, 0.25, 0.75) for sip in range(sips)}
    return RunResult(
        Collected(done, OpLogs.of({0: [OpRecord("ucie", "send", 0, 5)]}), {0: 5_000}),
        error,
        0.5,
        2.0,
    )


def test_the_pass_line_counts_the_checks_of_all_ranks():
    assert (
        pass_line("x", 2, BenchOutcome("intercube_allreduce", 32, 0))
        == "intercube_allreduce (ws=2): 32 OK"
    )
    assert pass_line("x", 2, BenchOutcome("ring", 30, 2)) == "ring (ws=2): 30 OK, 2 WRONG"
    assert pass_line("x", 2, BenchOutcome("ring", 0, 32)) == "ring (ws=2): 0 OK, 32 WRONG"
    assert pass_line("train", 2, None) == "train (ws=2): 2 ranks finished"


def test_the_table_has_the_columns_of_nccl_tests():
    lines = list(nccl_table([PerfRow(1024, 256, "f32", "sum", 12_345_678, 1.5, 2.25, 0)]))
    assert lines[0].split() == [
        "#",
        "size",
        "count",
        "type",
        "redop",
        "time",
        "algbw",
        "busbw",
        "#wrong",
    ]
    assert lines[2].split() == ["1024", "256", "f32", "sum", "12.346", "1.500", "2.250", "0"]
    assert lines[3:] == ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 2.250 GB/s"]


def test_a_run_without_data_reports_that_nothing_was_checked_and_passes():
    outcome = BenchOutcome(
        "ring", 0, 0, (PerfRow(1024, 256, "f32", "sum", 1, 1.5, 2.25, None),), unchecked=16
    )
    assert pass_line("x", 1, outcome) == "ring (ws=1): 16 NOT CHECKED (no data)"
    lines = list(nccl_table(outcome.rows))
    assert lines[2].split()[-1] == "N/A"
    assert lines[3] == "# Out of bounds values : N/A, nothing was checked"
    report = summarise(plan(), result(outcome=outcome))
    assert report.passed
    assert [rank.unchecked for rank in report.ranks] == [16, 16]


def test_the_statistics_name_time_speed_synchronisation_and_digest():
    text = "\n".join(run_statistics(summarise(plan(), result()), verbose=True))
    for words in (
        "5.000 ns",
        "1,000 in all processes\n",
        "500 events/s",
        "10 rounds, 40 messages between processes, 60 null messages (a time without packets)",
    ):
        assert words in text


def test_one_process_needs_no_synchronisation():
    lines = list(run_statistics(summarise(plan(1), result(sips=1)), verbose=True))
    assert "sync            none: all SIPs are in one process" in lines


def test_a_run_ends_with_time_speed_and_digest_unless_it_is_verbose():
    lines = list(run_statistics(summarise(plan(), result())))
    assert [line[:16].rstrip() for line in lines] == ["simulated time", "wall time", "digest"]


@pytest.mark.parametrize(("is_fallback", "end"), [(True, ", Python core"), (False, "")])
def test_the_heading_shows_the_slow_core_that_runs_without_a_request(
    is_fallback: bool, end: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tables, "IS_FALLBACK", is_fallback)
    _, second = heading(plan(3, procs=1))
    assert re.search(f"config [0-9a-f]{{12}}{end}$", second)


def test_the_heading_names_the_program_and_the_machine():
    first, second = heading(plan(3, procs=1))
    assert first == "# bench fake"
    assert second.startswith("# 3 sips in 1 process, ring_1d direct, config ")


def test_the_heading_of_a_script_has_the_given_path_and_its_arguments():
    script = ProgramSpec(
        "script", "examples/a.py", "/somewhere/examples/a.py", argv=("--its", "arguments")
    )
    assert (
        next(heading(replace(plan(), program=script))) == "# script examples/a.py --its arguments"
    )


def test_a_wrong_check_or_an_error_is_a_run_that_has_not_passed():
    assert summarise(plan(), result()).passed
    assert not summarise(plan(), result(wrong=1)).passed
    failed = summarise(plan(), result(error=UsageError("broken")))
    assert (failed.passed, failed.error) == (False, "broken")


MEMORIES = (
    MemoryStatistics("hbm", 300, 1_000_000, 0.0),
    MemoryStatistics("tcm", 40, 234_567, 0.44),
)


def test_a_verified_run_reports_what_was_compared_and_the_largest_deviation():
    report = summarise(plan(), result(), Verdict(True, 12_345, MEMORIES, ()))
    assert report.passed
    assert list(run_statistics(report))[-1] == (
        "verify-data     12,345 operations replayed, 1,234,567 elements in 340 buffers compared: "
        "worst deviation 0.4 eps  OK"
    )
    exact = summarise(plan(), result(), Verdict(True, 1, MEMORIES[:1], ()))
    assert list(run_statistics(exact))[-1].endswith(" in 300 buffers compared: every bit equal  OK")


def test_a_run_whose_verification_fails_has_not_passed_and_names_the_problems():
    report = summarise(
        plan(), result(), Verdict(False, 5, MEMORIES, ("this operation", "that buffer"))
    )
    assert not report.passed
    first, *problems = list(run_statistics(report))[-3:]
    assert first.endswith("in 340 buffers compared: FAILED")
    assert [problem.strip() for problem in problems] == ["this operation", "that buffer"]


def test_a_run_without_the_report_of_every_sip_has_neither_passed_nor_a_digest():
    partial = summarise(plan(2), result(sips=1))
    assert (partial.passed, partial.digest) == (False, "")


def test_the_files_of_a_run_are_readable_and_others_are_left_alone(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    directory = prepare_directory(tmp_path, "fake")
    RunFiles(directory, plan()).finish(result().collected, summarise(plan(), result()))
    run = json.loads((tmp_path / "run.json").read_text())
    assert {
        "bench",
        "sips",
        "procs",
        "passed",
        "digest",
        "sim_time_ns",
        "wall_s",
        "events",
        "config_hash",
        "core",
    } <= set(run)
    assert run["sync"] == {"rounds": 10, "messages": 40, "null_messages": 60}
    assert set(run["versions"]) == {"kernbench", "python", "numpy", "simpy", "pyzmq"}
    (line,) = (tmp_path / "oplog.jsonl").read_text().splitlines()
    assert (json.loads(line)["engine"], json.loads(line)["sip"]) == ("ucie", 0)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_that_was_not_traced_has_one_file(tmp_path: Path):
    files = RunFiles(prepare_directory(tmp_path, "fake"), replace(plan(), trace=False))
    files.finish(result().collected, summarise(plan(), result()))
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_line_of_the_op_log_has_a_name_beside_every_value(tmp_path: Path):
    record = OpRecord("pe_math", "mul", 0, 1, inputs=(Operand(16, (2,), "f32"), 2.5), axis=1)
    write_logs(tmp_path, OpLogs.of({3: [record]}), (), Writing())
    line = json.loads((tmp_path / "oplog.jsonl").read_text())
    assert (line["sip"], line["engine"], line["axis"], line["checksum"]) == (3, "pe_math", 1, 0)
    assert line["inputs"] == [{"address": 16, "shape": [2], "dtype": "f32", "strides": []}, 2.5]


def test_a_run_that_is_killed_does_not_leave_the_files_of_an_earlier_one(tmp_path: Path):
    for name in ("run.json", "oplog.jsonl", "trace.json"):
        (tmp_path / name).write_text("earlier")
    prepare_directory(tmp_path, "fake")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_has_one_run_at_a_time_and_the_other_is_refused_with_its_process(
    tmp_path: Path,
):
    first = prepare_directory(tmp_path / "out", "fake")
    (tmp_path / "out" / "run.json").write_text("of the first")
    expected = f"out is in use: a run of process {os.getpid()} writes to it; give this run another"
    with pytest.raises(UsageError, match=expected):
        prepare_directory(tmp_path / "out", "fake")
    assert (tmp_path / "out" / "run.json").read_text() == "of the first"
    first.release()
    assert prepare_directory(tmp_path / "out", "fake").directory == tmp_path / "out"


def test_nothing_of_an_earlier_run_stays_beside_the_files_of_the_next_one(tmp_path: Path):
    files = RunFiles(prepare_directory(tmp_path, "fake"), plan())
    files.finish(result().collected, summarise(plan(), result()))
    kineto = tmp_path / "kineto"
    kineto.mkdir()
    for path in (tmp_path / "web.html", tmp_path / "trace-2.pftrace", kineto / "rank0.json"):
        path.write_text("of the earlier run")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "ccl.yaml").write_text("edited, so it is no copy any more")
    prepare_directory(tmp_path, "fake")
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["ccl.yaml", "notes.txt"]


def test_configuration_files_of_a_user_stay_where_no_run_was(tmp_path: Path):
    for name in ("topology.yaml", "web.html"):
        (tmp_path / name).write_text("mine")
    prepare_directory(tmp_path, "fake")
    assert {path.name for path in tmp_path.iterdir()} == {"topology.yaml", "web.html"}


def test_default_directories_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("runs/0041-other").mkdir(parents=True)
    Path("runs/notes").mkdir()
    programs = ("fake", "examples/train.py")
    names = [prepare_directory(None, program).directory.name for program in programs]
    assert names == ["0042-fake", "0043-train"]


def test_an_output_directory_that_is_a_file_is_refused(tmp_path: Path):
    (tmp_path / "out").touch()
    with pytest.raises(UsageError, match="--out: cannot write"):
        prepare_directory(tmp_path / "out", "fake")


def test_a_short_run_prints_no_plain_progress():
    stream = io.StringIO()
    plain = progress(stream)
    assert isinstance(plain, PlainProgress)
    plain.launched((1,))
    plain.status(Status(0, 5_000, 100, 0.0), (0,))
    plain.ended()
    assert stream.getvalue() == ""


def test_plain_progress_is_one_line_for_all_lps_however_many_there_are():
    now_s = 0.0
    stream = io.StringIO()
    plain = PlainProgress(stream, lambda: now_s)
    plain.launched((1, 2))
    for now_s in (1.0, 2.0, 5.0, 6.0, 9.0):
        plain.status(Status(0, 7_000, round(100 * now_s), 0.5 * now_s), (0,))
        plain.status(Status(1, 4_000, round(300 * now_s), 0.0), (1,))
    # At LP 0's status at 5 s, the last status of LP 1 is that of 2 s.
    assert stream.getvalue() == "4.000 ns  220 events/s  blocked sip 0 50%, sip 1 0%\n"
    now_s = 10.0
    plain.status(Status(0, 9_000, 1_000, 5.0), (0,))
    lines = stream.getvalue().splitlines()
    assert lines[1:] == ["4.000 ns  520 events/s  blocked sip 0 50%, sip 1 0%"]


def test_progress_names_the_kernel_that_has_waited_longest_for_a_peer():
    now_s = 0.0
    pace = Pace(lambda: now_s)
    for lp, since_ps in enumerate((6_000, 2_000)):
        wait = BlockedPe(lp, 3, 1, "ring", "recv", "W", None, since_ps, "ring.py:7")
        pace.add(Status(lp, 9_000, 100, 0.0, oldest_wait=wait), (lp,))
    now_s = 1.0
    assert pace.line() == (
        "9.000 ns  200 events/s  blocked sip 0 0%, sip 1 0%  "
        "oldest wait 7.000 ns: sip 1 cube 3 pe 1 recv W at ring.py:7"
    )


def test_progress_of_many_lps_has_the_least_and_the_largest_blocked_share():
    now_s = 0.0
    pace = Pace(lambda: now_s)
    for lp in range(MOST_SHARES + 1):
        pace.add(Status(lp, 1_000, 0, lp / 10), (2 * lp, 2 * lp + 1))
    now_s = 1.0
    assert pace.line() == "1.000 ns  0 events/s  blocked 0% to 80%"


def test_an_lp_that_runs_alone_keeps_its_terminal():
    assert isinstance(progress(_Terminal(), alone=True), PlainProgress)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_line_while_the_run_lasts():
    stream = _Terminal()
    live = progress(stream)
    live.launched((1, 2))
    live.status(Status(1, 5_000, 100, 0.0), (4, 5))
    live.ended()
    assert "5.000 ns" in stream.getvalue()
    assert "blocked 0%" in stream.getvalue()
