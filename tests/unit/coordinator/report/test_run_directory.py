"""The files of a run are written in threads, before its report."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from coordinator.report import record_files, run_directory
from coordinator.report.aggregate import summarise
from coordinator.report.background import GivenUpError, Writing
from coordinator.report.files import prepare_directory, write_logs
from coordinator.report.record_files import write_records
from coordinator.report.record_rows import RecordRows
from coordinator.report.run_directory import RunFiles
from coordinator.report.run_lock import RunLock
from coordinator.session import RunResult
from coordinator.watch.collected import Collected
from coordinator.watch.op_logs import OpLogs
from runtime.core.errors import ProtocolError, UsageError
from runtime.core.output import OutputError
from runtime.core.run_tables import PROGRAMS
from runtime.core.trace import OpRecord
from tests.support.sessions import plan

ALL = {"run.json", "oplog.jsonl", "trace.json", "topology.yaml", "ccl.yaml", "records"}


@pytest.fixture
def collected() -> Collected:
    collected = Collected(logs=OpLogs.of({0: [OpRecord("ucie", "send", 0, 5)]}))
    row = PROGRAMS.packer.pack(0, 0, -1, 0, 0, 0, 0, 5, -1)
    collected.records.add(0, "programs", row, ("x",), "LP 0")
    return collected


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(prepare_directory(tmp_path / "run", "fake"), plan())


def finish(files: RunFiles, collected: Collected) -> None:
    result = RunResult(collected, UsageError("stopped"), 0.5, 2.0)
    files.finish(collected, summarise(plan(), result))


def names(files: RunFiles) -> set[str]:
    return {path.name for path in files.directory.iterdir()}


def test_a_run_has_its_files_whether_or_not_it_came_to_its_end(
    files: RunFiles, collected: Collected, tmp_path: Path
) -> None:
    files.collected(collected)
    finish(files, collected)
    other = RunFiles(prepare_directory(tmp_path / "failed", "fake"), plan())
    finish(other, collected)
    assert names(files) == names(other) == ALL
    for name in ALL - {"records", "run.json"}:
        assert (files.directory / name).read_bytes() == (other.directory / name).read_bytes()


def test_the_report_has_the_hashes_of_the_tables_and_of_the_configuration_files(
    files: RunFiles, collected: Collected
) -> None:
    finish(files, collected)
    report = json.loads((files.directory / "run.json").read_text())
    names = ("ccl.yaml", "records/sip0.programs.parquet", "topology.yaml")
    expected = {n: sha256((files.directory / n).read_bytes()).hexdigest() for n in names}
    assert report["files"] == expected
    assert report["inode"] == files.directory.stat().st_ino


def test_the_directory_is_locked_until_the_report_is_written_or_has_failed(
    files: RunFiles, collected: Collected
) -> None:
    with pytest.raises(UsageError, match="is in use"):
        RunLock(files.directory)
    (files.directory / "oplog.jsonl").mkdir()
    with pytest.raises(OutputError):
        finish(files, collected)
    RunLock(files.directory).release()
    assert ".lock" not in names(files)


def test_a_run_without_a_trace_begins_no_file_before_its_report(
    tmp_path: Path, collected: Collected
) -> None:
    files = RunFiles(prepare_directory(tmp_path, "fake"), replace(plan(), trace=False))
    files.collected(collected)
    assert names(files) == {".lock"}
    finish(files, collected)
    assert names(files) == {"run.json"}


def test_only_a_run_that_came_to_its_end_is_explained(tmp_path: Path, collected: Collected) -> None:
    collected.reached_ps[0] = 5

    def explain(records: RecordRows, total_ps: int) -> list[str]:
        return [f"{len(records.rows(PROGRAMS, 0))} program, {total_ps} ps"]

    files = RunFiles(prepare_directory(tmp_path / "run", "fake"), plan(), explain)
    files.collected(collected)
    finish(files, collected)
    assert files.explanation() == ["1 program, 5 ps"]
    failed = RunFiles(prepare_directory(tmp_path / "failed", "fake"), plan(), explain)
    finish(failed, collected)
    assert failed.explanation() == []


def test_the_explanation_begins_when_the_tables_are_written(
    tmp_path: Path, collected: Collected
) -> None:
    lock = prepare_directory(tmp_path / "run", "fake")

    def explain(_records: RecordRows, _total_ps: int) -> list[str]:
        return [path.name for path in (lock.directory / "records").iterdir()]

    files = RunFiles(lock, plan(), explain)
    files.collected(collected)
    assert files.explanation() == ["sip0.programs.parquet"]
    finish(files, collected)


def test_an_explanation_that_fails_leaves_the_files(tmp_path: Path, collected: Collected) -> None:
    def explain(records: RecordRows, total_ps: int) -> list[str]:
        raise ValueError(f"{len(records.tables)} table, {total_ps} ps")

    files = RunFiles(prepare_directory(tmp_path / "run", "fake"), plan(), explain)
    files.collected(collected)
    finish(files, collected)
    assert names(files) == ALL
    assert files.explanation() == []
    [warning] = files.failed.take()
    assert warning.startswith("no explanation of the time: ValueError: 1 table, 0 ps; ")


@pytest.mark.parametrize(
    ("function", "lost", "named"),
    [
        ("write_records", {"records"}, "records (records/)"),
        ("write_logs", {"oplog.jsonl", "trace.json"}, "op log and trace (oplog.jsonl, trace.json)"),
        ("write_report", {"run.json"}, "report (run.json)"),
    ],
)
def test_files_whose_computation_fails_are_named_and_the_others_are_written(
    function: str,
    lost: set[str],
    named: str,
    files: RunFiles,
    collected: Collected,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(run_directory, function, fault)
    files.collected(collected)
    finish(files, collected)
    assert ALL - names(files) == lost
    assert files.failed.take() == [
        f"no {named}: ZeroDivisionError: planted; the result of the run is not affected"
    ]


def test_a_table_whose_rows_cannot_be_computed_leaves_no_part_of_its_file(
    files: RunFiles, collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(record_files, "_groups", fault)
    files.collected(collected)
    finish(files, collected)
    assert list((files.directory / "records").iterdir()) == []
    assert files.failed.take()[0].startswith("no records (records/): MemoryError; ")


def test_a_file_that_a_thread_cannot_write_is_an_error_of_the_run_which_then_has_no_report(
    files: RunFiles, collected: Collected
) -> None:
    (files.directory / "oplog.jsonl").mkdir()
    files.collected(collected)
    with pytest.raises(OutputError, match=r"oplog\.jsonl: Is a directory"):
        finish(files, collected)
    assert "run.json" not in names(files)


def test_rows_without_their_texts_are_an_error_of_their_lp(
    files: RunFiles, collected: Collected
) -> None:
    collected.records.add(1, "programs", PROGRAMS.packer.pack(0, 0, -1, 9, 0, 0, 0, 5, -1), (), "X")
    files.collected(collected)
    with pytest.raises(ProtocolError, match="text 9, SIP 1 has sent 0"):
        finish(files, collected)


def test_writing_which_is_given_up_leaves_no_part_of_a_file(
    tmp_path: Path, collected: Collected
) -> None:
    writing = Writing()
    writing.give_up()
    with pytest.raises(GivenUpError):
        write_logs(tmp_path, collected.logs, (), writing)
    with pytest.raises(GivenUpError):
        write_records(tmp_path, RecordRows(collected.records), writing)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
