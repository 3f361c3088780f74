"""A run directory: `run.json`, the merged op log and the trace. Other files in it are left alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordinator.aggregate import LoggedOp, RunReport
from coordinator.report.trace_events import encode_trace
from runtime.errors import UsageError

RUN, OP_LOG, TRACE = "run.json", "oplog.jsonl", "trace.json"
_RUNS = "runs"


def prepare_directory(out: Path | None, program: str) -> Path:
    """Make `out`, or by default the next `runs/NNNN-<program>`, a script without folder and suffix.

    Raises `UsageError` where files cannot be written.
    """
    directory = out or Path(_RUNS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if out is None:
            directory = _next_numbered(directory, Path(program).stem)
        # What an earlier run left would pass for this one's if this one were killed.
        for name in (RUN, OP_LOG, TRACE):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    return directory


def write_files(directory: Path, report: RunReport, log: Sequence[LoggedOp]) -> None:
    """Write all files; `run.json` last, so that a directory which has it is complete."""
    (directory / OP_LOG).write_bytes(b"".join(_line(op) for op in log))
    (directory / TRACE).write_bytes(encode_trace(log))
    (directory / RUN).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _next_numbered(runs: Path, name: str) -> Path:
    heads = [path.name.partition("-")[0] for path in runs.iterdir()]
    number = max((int(head) for head in heads if head.isdecimal()), default=0) + 1
    while True:
        directory = runs / f"{number:04d}-{name}"
        try:
            directory.mkdir()
        except FileExistsError:
            number += 1
        else:
            return directory


def _line(op: LoggedOp) -> bytes:
    # The record is an array on the wire; a log that people read and filter has a name beside every value.
    record = op.record
    fields: dict[str, Any] = {name: getattr(record, name) for name in record.__struct_fields__}
    return msgspec.json.encode({"sip": op.sip, "index": op.index} | fields) + b"\n"
