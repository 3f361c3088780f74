"""Writes hand-made tables as the directory of a run."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from runtime.core.run_tables import (
    BIN_PS,
    COMMANDS,
    LINKS,
    OPS,
    PROGRAMS,
    RECORDS,
    STEPS,
    TABLES,
    Form,
    RunTable,
)
from runtime.wire.fields import PROTOCOL_VERSION

Row = Mapping[str, Any]
ROOT = Path(__file__).parents[2]
_OTHER_STEPS = 100
_PLACES = ("cube", "pe", "flow_source", "flow_target", "peer_sip", "peer_cube", "peer_pe")
_NONE_BY_DEFAULT = frozenset((*_PLACES, "command", "released_by", "after", "step"))


def op(engine: str, name: str, start_ps: int, end_ps: int, **rest: Any) -> Row:
    """A row of operations, requested when it starts."""
    return {"engine": engine, "name": name, "start_ps": start_ps, "end_ps": end_ps} | (
        {"requested_ps": start_ps} | rest
    )


def program(number: int, begin_ps: int, end_ps: int, **rest: Any) -> Row:
    """A row of programs: that of the rank, or a kernel."""
    return {"program": number, "begin_ps": begin_ps, "end_ps": end_ps} | rest


def step(program_number: int, operation: str, begin_ps: int, end_ps: int, **rest: Any) -> Row:
    """A row of steps, without a cost to issue."""
    return {"program": program_number, "operation": operation, "begin_ps": begin_ps} | (
        {"end_ps": end_ps, "issued_ps": begin_ps} | rest
    )


def command(number: int, kind: str, submitted_ps: int, begun_ps: int, end_ps: int, **rest: Any):
    """A row of commands, sent when it is submitted."""
    times = {"submitted_ps": submitted_ps, "departed_ps": submitted_ps}
    return {"command": number, "kind": kind, "begun_ps": begun_ps, "end_ps": end_ps} | times | rest


def tables(
    ops: Sequence[Row] = (),
    programs: Sequence[Row] = (),
    steps: Sequence[Row] = (),
    commands: Sequence[Row] = (),
    links: Sequence[Row] = (),
) -> dict[str, Sequence[Row]]:
    """The tables of a SIP; steps without a number have one behind those of others."""
    numbered = [{"step": number} | each for number, each in enumerate(steps, _OTHER_STEPS)]
    rows = (ops, programs, numbered, commands, links)
    names = (OPS, PROGRAMS, STEPS, COMMANDS, LINKS)
    return {table.name: each for table, each in zip(names, rows, strict=True)}


def default_of(name: str, *, is_text: bool) -> int | str:
    """The value of a column that a row leaves out: 0, "" or none."""
    return "" if is_text else -1 if name in _NONE_BY_DEFAULT else 0


def arrow_table(table: RunTable, rows: Sequence[Row], bin_ps: int = 1024) -> pa.Table:
    """The rows with the columns of `table`; values that a row leaves out are 0, "" or none."""
    arrays = []
    for column in table.columns:
        default = default_of(column.name, is_text=column.form is Form.TEXT)
        values = [row.get(column.name, default) for row in rows]
        if column.form is Form.TEXT:
            arrays.append(pa.array(values, pa.string()).dictionary_encode())
        else:
            arrays.append(pa.array(values, pa.int64()))
    made = pa.table(arrays, names=[column.name for column in table.columns])
    return made.replace_schema_metadata({BIN_PS: str(bin_ps)}) if table is LINKS else made


def write_run(
    directory: Path,
    sips: Sequence[Mapping[str, Sequence[Row]]],
    total_ps: int,
    **report: Any,
) -> Path:
    """Write the directory of a run with these tables, and the configuration of kernbench."""
    (directory / RECORDS).mkdir(parents=True)
    for sip, of_sip in enumerate(sips):
        # Without the rows of a table, a run has no file for it.
        for table in (each for each in TABLES if each.name in of_sip):
            rows = arrow_table(table, of_sip[table.name])
            parquet.write_table(rows, directory / RECORDS / table.file(sip))
    for name in ("topology.yaml", "ccl.yaml"):
        (directory / name).write_text((ROOT / name).read_text())
    contents = {
        "bench": "hand-made",
        "kind": "bench",
        "program": "absent:hand_made",
        "as_cuda": False,
        "sips": len(sips),
        "passed": True,
        "error": None,
        "digest": "0" * 64,
        "sim_time_ns": total_ps / 1000,
        "config_hash": "0" * 64,
        "arguments": {},
        "argv": [],
        "data": True,
        "versions": {"kernbench": "1"},
        "protocol": PROTOCOL_VERSION,
        "user_code": {},
        "folder": str(directory),
        "inode": directory.stat().st_ino,
    } | report
    (directory / "run.json").write_text(json.dumps(contents))
    sign(directory)
    return directory


def sign(directory: Path) -> None:
    """Write the hashes of the files of a run to its `run.json`, as they are now."""
    paths = [*directory.glob(f"{RECORDS}/*.parquet"), *directory.glob("*.yaml")]
    files = {
        path.relative_to(directory).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
    }
    change_report(directory, files=files)


def change_report(directory: Path, **report: Any) -> None:
    """Change values of `run.json`."""
    path = directory / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | report))
