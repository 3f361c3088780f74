"""Writes the files of a run: `run.json`, the merged op log, the trace, the send/receive trace.

What an earlier run has left in the directory is removed. Other files in it are not changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from coordinator.report.aggregate import RunReport
from coordinator.report.background import Writing
from coordinator.report.log_text import LogText
from coordinator.report.record_files import remove_records
from coordinator.report.run_lock import RunLock
from coordinator.report.trace_events import TAIL, TraceThreads
from coordinator.watch.op_logs import OpLogs
from runtime.core.errors import UsageError
from runtime.core.output import OutputFile, write_output
from runtime.core.sha256 import sha256_of_file
from runtime.wire.reports import SipReport, SlotTransfer

RUN, OP_LOG, TRACE, CCL_TRACE = "run.json", "oplog.jsonl", "trace.json", "ccl_trace.txt"
TOPOLOGY, CCL = "topology.yaml", "ccl.yaml"
"""Copies of the configuration files of a traced run."""
_RUNS = "runs"
_MADE_OF_RUN = ("web.html", "trace*.pftrace", "kineto/rank*.json")
"""The files that `kernbench web` and `kernbench trace` write by default."""


class _FilesOfReport(msgspec.Struct):
    """The part of an earlier `run.json` that names files."""

    files: dict[str, str]


def prepare_directory(out: Path | None, program: str) -> RunLock:
    """Create `out`, or by default the next `runs/NNNN-<program>`, and lock it.

    Of a script, `<program>` is the file name without suffix. `UsageError` if it is not writable, or
    if another run writes to it.
    """
    directory = out or Path(_RUNS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if out is None:
            directory = next_numbered(directory, Path(program).stem)
        # A directory that exists may be read-only, which only a trial shows.
        lock = _locked(directory)
        (directory / OP_LOG).touch()
        # If this run is killed, the files of an earlier run must not be taken for its own.
        _remove_made_of_run(directory)
        for name in (RUN, OP_LOG, TRACE, CCL_TRACE):
            (directory / name).unlink(missing_ok=True)
        remove_records(directory)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    return lock


def _locked(directory: Path) -> RunLock:
    try:
        return RunLock(directory)
    except UsageError as error:
        raise UsageError(f"--out: {error}; give this run another directory") from error


def _remove_made_of_run(directory: Path) -> None:
    """Remove the copies of configuration files of an earlier run, and what was made of its tables.

    Files of these names which are not of a run stay: a folder of a user may be `--out`.
    """
    try:
        report = msgspec.json.decode((directory / RUN).read_bytes(), type=_FilesOfReport)
    except (OSError, msgspec.DecodeError, RecursionError):
        return
    for name in (TOPOLOGY, CCL):
        with suppress(OSError):
            if report.files.get(name) == sha256_of_file(directory / name):
                (directory / name).unlink()
    for pattern in _MADE_OF_RUN:
        for file in directory.glob(pattern):
            file.unlink()


def write_logs(directory: Path, logs: OpLogs, sips: Iterable[SipReport], writing: Writing) -> None:
    """Write the merged op log, and the trace with the named ranges of `sips`; if `writing` is given
    up, neither.

    Raises `OutputError` for the first file that cannot be written.
    """
    # Piece by piece: the text of a large log must not be in memory as a whole.
    with OutputFile(directory / OP_LOG) as op_log, OutputFile(directory / TRACE) as trace:
        text = LogText(logs)
        threads = TraceThreads(text.lanes)
        trace.write(threads.head())
        for lines, slices in text.pieces(threads.of_lanes):
            writing.check()
            op_log.write(lines)
            trace.write(slices)
        for report in sips:
            trace.write(threads.ranges(report.sip, report.ranges))
        trace.write(TAIL)


def write_ccl_trace(directory: Path, transfers: Sequence[SlotTransfer]) -> None:
    """Write one line per slot sent or received, in the order of `(time_ps, sip, order in it)`.

    Raises `OutputError`.
    """
    ordered = sorted(transfers, key=lambda transfer: (transfer.time_ps, transfer.sip))
    lines = "".join(f"{transfer}\n" for transfer in ordered)
    write_output(directory / CCL_TRACE, lines.encode())


def write_report(directory: Path, report: RunReport, files: Mapping[str, str]) -> None:
    """Write `run.json`, the last file of a run: a directory that contains it is complete.

    `files` are the hashes of the files beside it. Raises `OutputError`.
    """
    inode = directory.stat().st_ino
    report = msgspec.structs.replace(report, files=dict(files), inode=inode)
    # Indented: people open this file first.
    write_output(
        directory / RUN, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
    )


def next_numbered(runs: Path, name: str) -> Path:
    """Create `NNNN-name` in the folder `runs`, with the number after those in it."""
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
