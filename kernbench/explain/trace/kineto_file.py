"""Writes the trace of a rank as PyTorch's profiler (Kineto) does, for Holistic Trace Analysis.

A launch is one kernel on the device, from the begin of its first PE to the end of its last one, and
a copy of the host is a memcpy. Both have the number of their command as correlation, by which the
call on the host is found. Analyses recognise what a kernel is by its name, as NCCL and CUDA give
it: collectives begin with `ncclDevKernel_`, copies with `Memcpy`, calls with `cuda`.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from kernbench.explain.records import Columns, RecordedRun
from kernbench.explain.records.columns import Numbers
from kernbench.explain.trace.selection import TracePart
from runtime.core.output import write_output
from runtime.core.run_tables import COMMANDS, NONE, PROGRAMS, RANK_PROGRAM, STEPS

_PS_PER_US = 1_000_000
_COLLECTIVE = "ncclDevKernel_"
_COPIES = {
    "MemoryWriteMsg": ("Memcpy HtoD (Host -> Device)", "cudaMemcpyAsync"),
    "MemoryReadMsg": ("Memcpy DtoH (Device -> Host)", "cudaMemcpyAsync"),
}
_LAUNCH = "KernelLaunchMsg"
_HOST_PID, _PROGRAM_TID = 1, 1
_encode = msgspec.json.Encoder().encode


class _KinetoEvent(Struct, frozen=True, omit_defaults=True):
    """A complete event; `ts` and `dur` are microseconds."""

    ph: str
    cat: str
    name: str
    pid: int
    tid: int
    ts: float
    dur: float
    args: dict[str, str | int]


def write_kineto(records: RecordedRun, sip: int, selection: TracePart, path: Path) -> int:
    """Write the file of a rank; the number of its events."""
    events = [*_host_events(records, sip, selection), *_device_events(records, sip, selection)]
    events.sort(key=lambda event: (event.ts, -event.dur))
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "kernbench SIP"}],
        "distributedInfo": {
            "backend": "ahbm",
            "rank": sip,
            "world_size": records.run.sips,
        },
        "displayTimeUnit": "ns",
        "traceName": path.name,
        "traceEvents": events,
    }
    # With a space behind each colon: Holistic Trace Analysis searches for `"rank": `.
    write_output(path, msgspec.json.format(_encode(head), indent=0))
    return len(events)


def _host_events(records: RecordedRun, sip: int, selection: TracePart) -> Iterator[_KinetoEvent]:
    steps = records.table(STEPS, sip)
    of_rank = (steps["program"] == RANK_PROGRAM) & selection.rows(steps, "begin_ps")
    for row in np.flatnonzero(of_rank).tolist():
        yield _KinetoEvent(
            "X",
            "cpu_op",
            steps.text("operation")[row],
            _HOST_PID,
            _PROGRAM_TID,
            *_interval(int(steps["begin_ps"][row]), int(steps["end_ps"][row])),
            {"line": steps.text("line")[row]},
        )
    commands = records.table(COMMANDS, sip)
    for row in np.flatnonzero(selection.rows(commands, "submitted_ps")).tolist():
        kind = commands.text("kind")[row]
        call = "cudaLaunchKernel" if kind == _LAUNCH else _COPIES.get(kind, ("", ""))[1]
        if call:
            yield _KinetoEvent(
                "X",
                "cuda_runtime",
                call,
                _HOST_PID,
                _PROGRAM_TID,
                *_interval(int(commands["submitted_ps"][row]), int(commands["departed_ps"][row])),
                {
                    "correlation": int(commands["command"][row]),
                    "line": commands.text("line")[row],
                },
            )


def _device_events(records: RecordedRun, sip: int, selection: TracePart) -> Iterator[_KinetoEvent]:
    commands, programs = records.table(COMMANDS, sip), records.table(PROGRAMS, sip)
    launched = programs["command"]
    for row in np.flatnonzero(selection.rows(commands, "submitted_ps")).tolist():
        kind, number = commands.text("kind")[row], int(commands["command"][row])
        kernels = np.flatnonzero(launched == number) if kind == _LAUNCH else _NO_ROWS
        if len(kernels):
            yield _device_event(
                commands,
                row,
                "kernel",
                _kernel_name(programs, int(kernels[0])),
                int(programs["begin_ps"][kernels].min()),
                int(programs["end_ps"][kernels].max()),
            )
        elif kind in _COPIES and commands["begun_ps"][row] != NONE:
            yield _device_event(
                commands,
                row,
                "gpu_memcpy",
                _COPIES[kind][0],
                int(commands["begun_ps"][row]),
                int(commands["end_ps"][row]),
            )


_NO_ROWS: Numbers = np.zeros(0, np.int64)


def _device_event(
    commands: Columns, row: int, category: str, name: str, begin_ps: int, end_ps: int
) -> _KinetoEvent:
    stream = int(commands["stream"][row])
    return _KinetoEvent(
        "X",
        category,
        name,
        0,
        stream,
        *_interval(begin_ps, end_ps),
        {
            "device": 0,
            "stream": stream,
            "correlation": int(commands["command"][row]),
            "line": commands.text("line")[row],
        },
    )


def _kernel_name(programs: Columns, row: int) -> str:
    """The kernel; a collective has the prefix by which analyses recognise communication."""
    name = programs.text("kernel")[row]
    return f"{_COLLECTIVE}{name}" if programs.text("thread")[row] != "kernels" else name


def _interval(begin_ps: int, end_ps: int) -> tuple[float, float]:
    return begin_ps / _PS_PER_US, (end_ps - begin_ps) / _PS_PER_US
