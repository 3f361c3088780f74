"""Divides the time of each rank, and that of the kernels of each PE, into parts.

A rank: an instant belongs to the first part of `TimePart` that applies.

    compute               an engine of a PE computes, or a kernel is in a computation that does
                          not wait for memory; or the rank computes on its host
    memory stall          a kernel waits for a load, a store, a copy or their data
    exposed communication a kernel sends, receives, or waits in a barrier
    launch                no kernel runs, and a command of the host is on its way, in work or
                          being answered; a copy that has begun at the IO_CPU is memory stall
    idle                  none of these

The parts are measures of unions, so that they sum to the time of the run to the picosecond.

A PE: the steps of a kernel tile the kernel. Its `issue` is the time of its commands, a step of a
computation is computation while an engine of the PE computes, and otherwise what it waited for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kernbench.explain.records import Columns, RunRecords
from kernbench.explain.why.intervals import Coverage, Intervals, by_priority, joined
from kernbench.explain.why.parts import (
    COMPUTE_ENGINES,
    HOST_KINDS,
    TimePart,
    parts_of_steps,
    waits_for_memory,
)
from runtime.core.run_tables import COMMANDS, NONE, OPS, PROGRAMS, RANK_PROGRAM, STEPS


class RankTime(Struct, frozen=True):
    """The time of a rank by parts, which sum to `total_ps`."""

    sip: int
    total_ps: int
    parts_ps: Mapping[TimePart, int]


class PeTime(Struct, frozen=True):
    """The time of the kernels of a PE: commands, and waits by parts. They sum to `kernel_ps`."""

    sip: int
    cube: int
    pe: int
    kernel_ps: int
    issue_ps: int
    parts_ps: Mapping[TimePart, int]


def rank_time(records: RunRecords, sip: int) -> RankTime:
    """The breakdown of a rank."""
    total_ps = records.total_ps
    steps, ops = records.table(STEPS, sip), records.table(OPS, sip)
    in_kernel = steps["program"] != RANK_PROGRAM
    kernel_steps = steps.take(in_kernel)
    parts = parts_of_steps(kernel_steps, ops)
    stalled = (parts == TimePart.COMPUTE) & waits_for_memory(kernel_steps.text("cause"))
    parts = np.where(stalled, np.int8(TimePart.MEMORY), parts)
    host = steps.take(~in_kernel & steps.text("operation").equal("host"))
    layers = [
        joined([_of_part(kernel_steps, parts, part), *extra])
        for part, extra in (
            (TimePart.COMPUTE, [_engine_intervals(ops), _interval(host)]),
            (TimePart.MEMORY, []),
            (TimePart.COMMUNICATION, []),
            (TimePart.LAUNCH, []),
        )
    ]
    # Commands count where no kernel is in a step: their layers come after those of kernels.
    copies, others = _command_intervals(records.table(COMMANDS, sip), total_ps)
    lengths = by_priority([*layers, copies, others], total_ps)
    compute, memory, communication, in_launch, copying, launching, idle = lengths
    return RankTime(
        sip,
        total_ps,
        {
            TimePart.COMPUTE: compute,
            TimePart.MEMORY: memory + copying,
            TimePart.COMMUNICATION: communication,
            TimePart.LAUNCH: in_launch + launching,
            TimePart.IDLE: idle,
        },
    )


def pe_times(records: RunRecords, sip: int) -> list[PeTime]:
    """The breakdown of the kernels of each PE that ran one, by coordinates."""
    programs, ops = records.table(PROGRAMS, sip), records.table(OPS, sip)
    steps = records.table(STEPS, sip)
    steps = steps.take(steps["program"] != RANK_PROGRAM)
    if not len(steps):
        return []
    keys = _keys(programs["cube"], programs["pe"])
    of_program = np.zeros(int(programs["program"].max(initial=0)) + 1, np.int64)
    of_program[programs["program"]] = keys
    step_keys = of_program[steps["program"]]
    columns = _step_columns(steps, step_keys, ops)
    pes = np.unique(step_keys)
    sums = [_sums(pes, step_keys, column) for column in columns]
    return [_pe_time(sip, int(key), row) for key, *row in zip(pes, *sums, strict=True)]


def worst(times: Sequence[PeTime]) -> PeTime | None:
    """The PE whose kernels waited longest for anything but computation."""
    return max(
        times, key=lambda each: each.kernel_ps - each.parts_ps[TimePart.COMPUTE], default=None
    )


def _pe_time(sip: int, key: int, row: Sequence[Any]) -> PeTime:
    cube, pe = divmod(key, _PES)
    issue, *parts = map(int, row)
    return PeTime(
        sip=sip,
        cube=cube,
        pe=pe,
        kernel_ps=issue + sum(parts),
        issue_ps=issue,
        parts_ps=dict(zip(_WAITED, parts, strict=True)),
    )


_PES = 1 << 15
_WAITED = (TimePart.COMPUTE, TimePart.MEMORY, TimePart.COMMUNICATION, TimePart.LAUNCH)


def _keys(cubes: NDArray[Any], pes: NDArray[Any]) -> NDArray[np.int64]:
    return cubes.astype(np.int64) * _PES + pes


def _step_columns(steps: Columns, keys: NDArray[np.int64], ops: Columns) -> list[NDArray[np.int64]]:
    """The issue of each step, and its wait by parts."""
    parts = parts_of_steps(steps, ops)
    waits = steps["end_ps"] - steps["issued_ps"]
    computes = parts == TimePart.COMPUTE
    busy = np.zeros(len(steps), np.int64)
    busy[computes] = _busy_in(steps.take(computes), keys[computes], ops)
    stalled = computes & waits_for_memory(steps.text("cause"))
    # The engines rest while a computation fills its pipeline; that is no wait for memory.
    rest = np.where(stalled, waits - busy, 0)
    by_part = [np.where(parts == part, waits, 0) for part in _WAITED]
    by_part[TimePart.COMPUTE] -= rest
    by_part[TimePart.MEMORY] += rest
    return [steps["issued_ps"] - steps["begin_ps"], *by_part]


def _busy_in(steps: Columns, keys: NDArray[np.int64], ops: Columns) -> NDArray[np.int64]:
    """The time in each of the steps in which an engine of its PE computes."""
    computing = ops.take(ops.text("engine").matching(COMPUTE_ENGINES.__contains__))
    # One axis for all PEs: each has a stretch of it, longer than the run.
    span = 1 + int(max(computing["end_ps"].max(initial=0), steps["end_ps"].max(initial=0)))
    pes, numbers = np.unique(keys, return_inverse=True)
    op_keys = _keys(computing["cube"], computing["pe"])
    number = np.searchsorted(pes, op_keys)
    present = (number < len(pes)) & (pes[np.minimum(number, len(pes) - 1)] == op_keys)
    shift = number[present] * span
    # An interval of PE k lies k spans later on the axis, so intervals of two PEs never merge.
    coverage = Coverage.of(
        computing["start_ps"][present] + shift, computing["end_ps"][present] + shift
    )
    shifts = numbers * span
    return coverage.until(steps["end_ps"] + shifts) - coverage.until(steps["issued_ps"] + shifts)


def _sums(
    pes: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]
) -> NDArray[np.int64]:
    # np.bincount would add floats, which are inexact above 2^53.
    sums = np.zeros(len(pes), np.int64)
    np.add.at(sums, np.searchsorted(pes, keys), values)
    return sums


def _of_part(steps: Columns, parts: NDArray[Any], part: TimePart) -> Intervals:
    chosen = parts == part
    return steps["begin_ps"][chosen], steps["end_ps"][chosen]


def _interval(rows: Columns) -> Intervals:
    return rows["begin_ps"], rows["end_ps"]


def _engine_intervals(ops: Columns) -> Intervals:
    chosen = ops.text("engine").matching(COMPUTE_ENGINES.__contains__)
    return ops["start_ps"][chosen], ops["end_ps"][chosen]


def _command_intervals(commands: Columns, total_ps: int) -> tuple[Intervals, Intervals]:
    """Copies from their begin at the IO_CPU to the answer; all commands from their submission."""
    ends = np.where(commands["end_ps"] == NONE, total_ps, commands["end_ps"])
    copies = commands.text("kind").matching(HOST_KINDS.__contains__)
    begun = np.where(commands["begun_ps"] == NONE, total_ps, commands["begun_ps"])
    return (begun[copies], ends[copies]), (commands["submitted_ps"], ends)
