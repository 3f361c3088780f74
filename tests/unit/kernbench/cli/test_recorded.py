"""Every command that reads a run directory names in one line what is damaged in it."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kernbench.cli.main import main
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import change_report, sign, write_run
from tests.support.web_runs import write_page_run

OPS = "records/sip0.ops.parquet"


def replaced(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda run: (run / name).write_bytes(content)


def truncated(name: str) -> Callable[[Path], object]:
    return lambda run: os.truncate(run / name, (run / name).stat().st_size // 2)


def flipped(name: str, share: float) -> Callable[[Path], object]:
    def flip(run: Path) -> None:
        content = bytearray((run / name).read_bytes())
        content[int(share * len(content))] ^= 16
        (run / name).write_bytes(content)

    return flip


def folder(name: str) -> Callable[[Path], object]:
    return lambda run: ((run / name).unlink(), (run / name).mkdir())


def fifo(name: str) -> Callable[[Path], object]:
    """A file that has no content before another process writes to it."""
    return lambda run: ((run / name).unlink(), os.mkfifo(run / name))


def endless(name: str) -> Callable[[Path], object]:
    return lambda run: ((run / name).unlink(), (run / name).symlink_to("/dev/zero"))


def larger_than_memory(name: str) -> Callable[[Path], object]:
    """A sparse file of 8 TiB, of which the disk holds nothing."""
    return lambda run: os.truncate(run / name, 1 << 43)


def removed(name: str) -> Callable[[Path], object]:
    return lambda run: (run / name).unlink()


def report(**values: object) -> Callable[[Path], object]:
    return lambda run: change_report(run, **values)


def signed(name: str, content: bytes) -> Callable[[Path], object]:
    """Damage whose checksum is right, as of a report that was made with it."""
    return lambda run: ((run / name).write_bytes(content), sign(run))


OF_REPORT: dict[str, Callable[[Path], object]] = {
    "empty report": replaced("run.json", b""),
    "report of zeros": replaced("run.json", bytes(99)),
    "report that is no text": replaced("run.json", b"\xff\xfe" * 99),
    "report of brackets": replaced("run.json", b"[" * 100_000),
    "deep value in the report": replaced("run.json", b'{"x":' + b"[" * 100_000),
    "number as report": replaced("run.json", b"1e999"),
    "truncated report": truncated("run.json"),
    "folder as report": folder("run.json"),
    "FIFO as report": fifo("run.json"),
    "endless report": endless("run.json"),
    "report larger than the memory": larger_than_memory("run.json"),
    "huge number of SIPs": report(sips=10**30),
    "large number of SIPs": report(sips=1 << 40),
    "no SIPs": report(sips=0),
    "negative SIPs": report(sips=-1),
    "text as SIPs": report(sips="two"),
    "huge time": report(sim_time_ns=1e300),
    "negative time": report(sim_time_ns=-1),
    "text as time": report(sim_time_ns="long"),
    "list as files": report(files=[]),
    "numbers as hashes": report(files={OPS: 7}),
    "no code": report(user_code=None),
    "code without hash": report(user_code={"model": ["model.py"]}),
    "number as version": report(versions={"kernbench": 1}),
    "text as protocol": report(protocol="sixteen"),
}
OF_FILES: dict[str, Callable[[Path], object]] = {
    "empty table": replaced(OPS, b""),
    "truncated table": truncated(OPS),
    "flipped bit at the begin": flipped(OPS, 0.0),
    "flipped bit in the middle": flipped(OPS, 0.5),
    "flipped bit near the end": flipped(OPS, 0.98),
    "folder as table": folder(OPS),
    "FIFO as table": fifo(OPS),
    "endless table": endless(OPS),
    "table larger than the memory": larger_than_memory(OPS),
    "no table": removed(OPS),
    "file as tables": lambda run: (
        (run / "records").rename(run / "other"),
        (run / "records").touch(),
    ),
    "no tables": lambda run: (run / "records").rename(run / "other"),
    "signed garbage as table": signed(OPS, b"PAR1" * 99),
    "signed empty table": signed(OPS, b""),
    "empty topology": replaced("topology.yaml", b""),
    "signed empty topology": signed("topology.yaml", b""),
    "signed garbage as topology": signed("topology.yaml", b"\xff{[" * 9),
    "signed deep topology": signed("topology.yaml", b"[" * 5000),
    "topology of code": signed("topology.yaml", b"!!python/object/apply:os.abort []\n"),
    "flipped bit of the topology": flipped("topology.yaml", 0.5),
    "folder as topology": folder("topology.yaml"),
    "no collectives": removed("ccl.yaml"),
    "file outside of the directory": report(files={"../../etc/passwd": "00"}),
    "file with a null byte": report(files={"records/\0": "00"}),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "runs" / "0001-run", [one_kernel()], 1000)


def is_one_line(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) == 1 and lines[0].startswith("kernbench: error: ")


@pytest.mark.parametrize(
    "damage", [*OF_REPORT.values(), *OF_FILES.values()], ids=[*OF_REPORT, *OF_FILES]
)
@pytest.mark.parametrize("command", ["why", "trace", "web"])
def test_damage_is_one_line(
    run: Path,
    damage: Callable[[Path], object],
    command: str,
    capsys: pytest.CaptureFixture[str],
):
    damage(run)
    assert main([command, str(run)]) == 2
    err = capsys.readouterr().err
    assert is_one_line(err), err


def test_an_op_log_that_has_no_end_is_one_line(run: Path, capsys: pytest.CaptureFixture[str]):
    (run / "oplog.jsonl").symlink_to("/dev/zero")
    assert main(["web", str(run)]) == 2
    err = capsys.readouterr().err
    assert is_one_line(err), err
    assert "oplog.jsonl: it is no regular file" in err


@pytest.mark.parametrize(
    ("table", "column", "value", "command"),
    [
        ("steps", "program", 1_000_000, "why"),
        ("steps", "program", 1_000_000, "web"),
        ("programs", "program", -5, "trace"),
        ("ops", "start_ps", 1_000_000, "why"),
        ("commands", "begun_ps", -5, "trace"),
    ],
)
def test_tables_that_contradict_each_other_are_one_line(
    tmp_path: Path,
    table: str,
    column: str,
    value: int,
    command: str,
    capsys: pytest.CaptureFixture[str],
):
    run = write_page_run(tmp_path / "run")
    path = run / "records" / f"sip0.{table}.parquet"
    rows = parquet.read_table(path)
    values = pa.array([value] * len(rows), pa.int64())
    changed = rows.set_column(rows.schema.get_field_index(column), column, values)
    parquet.write_table(changed, path)
    sign(run)
    assert main([command, str(run)]) == 2
    err = capsys.readouterr().err
    assert is_one_line(err), err
    assert "contradict each other" in err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["web"], "web.html"),
        (["trace"], "trace.pftrace"),
        (["trace", "--format", "kineto"], "kineto"),
    ],
)
def test_an_output_is_not_written_through_a_link_in_the_directory(
    run: Path, command: list[str], name: str, capsys: pytest.CaptureFixture[str]
):
    own = run.parent / "own"
    own.write_text("mine")
    (run / name).symlink_to(own)
    assert main([*command, str(run)]) == 2
    err = capsys.readouterr().err
    assert is_one_line(err), err
    assert own.read_text() == "mine"


@pytest.mark.parametrize("damage", OF_REPORT.values(), ids=OF_REPORT)
def test_a_damaged_report_has_a_line_in_the_list(
    run: Path, damage: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
):
    damage(run)
    assert main(["runs", "list", str(run.parent)]) == 1
    _, line = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == ["1", "run"]
    assert "run.json" in line
