"""Writes the files of a run: `run.json`, the merged op log, the trace, the send/receive trace.

Other files in the directory are not changed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordinator.aggregate import LoggedOp, RunReport
from coordinator.report.trace_events import encode_trace
from runtime.core.errors import UsageError
from runtime.core.output import write_output
from runtime.core.trace import Operand
from runtime.wire.reports import SlotTransfer

RUN, OP_LOG, TRACE, CCL_TRACE = "run.json", "oplog.jsonl", "trace.json", "ccl_trace.txt"
_RUNS = "runs"


def prepare_directory(out: Path | None, program: str) -> Path:
    """Create `out`, or by default the next `runs/NNNN-<program>`.

    Of a script, `<program>` is the file name without suffix. `UsageError` if it is not writable.
    """
    directory = out or Path(_RUNS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if out is None:
            directory = _next_numbered(directory, Path(program).stem)
        # A directory that exists may be read-only, which only a trial shows.
        (directory / OP_LOG).touch()
        # If this run is killed, the files of an earlier run must not be taken for its own.
        for name in (RUN, OP_LOG, TRACE, CCL_TRACE):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    return directory


def write_files(directory: Path, report: RunReport, log: Sequence[LoggedOp]) -> None:
    """Write all files; `run.json` is the last: a directory that contains it is complete.

    Raises `OutputError` for the first file that cannot be written.
    """
    write_output(directory / OP_LOG, b"".join(_line(op) for op in log))
    write_output(directory / TRACE, encode_trace(log))
    # Indented: people open this file first.
    write_output(
        directory / RUN, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
    )


def write_ccl_trace(directory: Path, transfers: Sequence[SlotTransfer]) -> None:
    """Write one line per slot sent or received, in the order of `(time_ps, sip, order in it)`.

    Raises `OutputError`.
    """
    ordered = sorted(transfers, key=lambda transfer: (transfer.time_ps, transfer.sip))
    lines = "".join(f"{transfer}\n" for transfer in ordered)
    write_output(directory / CCL_TRACE, lines.encode())


def _next_numbered(runs: Path, name: str) -> Path:
    prefixes = [path.name.partition("-")[0] for path in runs.iterdir()]
    number = max((int(prefix) for prefix in prefixes if prefix.isdecimal()), default=0) + 1
    while True:
        directory = runs / f"{number:04d}-{name}"
        try:
            directory.mkdir()
        except FileExistsError:
            # Another run has taken the number in the meantime.
            number += 1
        else:
            return directory


def _line(op: LoggedOp) -> bytes:
    # Records are arrays on the wire; a log for people and filters has a name beside every value.
    inputs = [_named(each) if isinstance(each, Operand) else each for each in op.record.inputs]
    return (
        msgspec.json.encode(
            {"sip": op.sip, "index": op.index} | _named(op.record) | {"inputs": inputs}
        )
        + b"\n"
    )


def _named(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
