"""The time of the launches of each kernel, by its name."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kernbench.explain.records import RunRecords
from runtime.core.run_tables import NONE, PROGRAMS


class KernelTime(Struct, frozen=True):
    """The launches of a kernel on all ranks, and the most PEs of a launch.

    A launch lasts from the begin of its first PE to the end of its last one. `time_ps` is the sum
    over the launches, which may overlap; `longest_ps` is the time of one.
    """

    name: str
    launches: int
    pes: int
    time_ps: int
    longest_ps: int


def kernel_times(records: RunRecords) -> list[KernelTime]:
    """The kernels of a run, the longest first; of equal ones by name."""
    launches: dict[str, list[tuple[int, int]]] = {}
    for sip in records.sips:
        for name, pes, time_ps in _launches(records, sip):
            launches.setdefault(name, []).append((pes, time_ps))
    times = [
        KernelTime(
            name=name,
            launches=len(each),
            pes=max(pes for pes, _ in each),
            time_ps=sum(time_ps for _, time_ps in each),
            longest_ps=max(time_ps for _, time_ps in each),
        )
        for name, each in launches.items()
    ]
    return sorted(times, key=lambda kernel: (-kernel.time_ps, kernel.name))


def _launches(records: RunRecords, sip: int) -> Sequence[tuple[str, int, int]]:
    """The name, the PEs and the time of each launch, which is one command."""
    programs = records.table(PROGRAMS, sip)
    programs = programs.take((programs["pe"] != NONE) & (programs["command"] != NONE))
    if not len(programs):
        return []
    commands, first, number, pes = np.unique(
        programs["command"], return_index=True, return_inverse=True, return_counts=True
    )
    begins = np.full(len(commands), np.iinfo(np.int64).max)
    ends = np.zeros(len(commands), np.int64)
    np.minimum.at(begins, number, programs["begin_ps"])
    np.maximum.at(ends, number, programs["end_ps"])
    names = programs.text("kernel")
    times = (ends - begins).tolist()
    return [
        (names[row], count, time_ps)
        for row, count, time_ps in zip(first.tolist(), pes.tolist(), times, strict=True)
    ]
