"""Splits the time of a kernel on many PEs by the engine that works, from the op log."""

from collections.abc import Iterable

from kernbench.studies.milestone_gqa_llama70b.headline_rows import TimeParts
from runtime.core.trace import OpRecord

Interval = tuple[int, int]
_Pe = tuple[int, int, int]
_PARTS = ("gemm", "vector", "memory", "message")
"""In the order of their priority."""
_ENGINES = {"pe_gemm": "gemm", "pe_math": "vector"}
_REQUESTS = {
    "load": "memory",
    "store": "memory",
    "gather": "memory",
    "ipcq_send": "message",
    "ipcq_recv": "message",
}


class WorkIntervals:
    """The times at which the engines of each PE work, from an op log that arrives in parts."""

    def __init__(self) -> None:
        self._works: dict[tuple[_Pe, str], list[Interval]] = {}
        self._kernels: dict[_Pe, Interval] = {}

    def add(self, sip: int, records: Iterable[OpRecord]) -> None:
        """Take further records of a SIP."""
        for record in records:
            pe, times = (sip, record.cube, record.pe), (record.start_ps, record.end_ps)
            part = _part(record)
            if part:
                _append(self._works.setdefault((pe, part), []), times)
            elif record.engine == "pe_cpu":
                self._kernels[pe] = times

    def parts(self) -> TimeParts:
        """The parts of the only launch, as a mean over all its PEs."""
        count = len(self._kernels)
        last_ps = max(end_ps for _, end_ps in self._kernels.values())
        sums_ps, other_ps, idle_ps = dict.fromkeys(_PARTS, 0), 0, 0
        for pe, (start_ps, end_ps) in self._kernels.items():
            busy, before_ps = list[Interval](), 0
            for part in _PARTS:
                busy = merged([*busy, *self._works.get((pe, part), ())])
                # A store in flight may end after the kernel that has started it.
                busy_ps = sum(min(end, end_ps) - max(start, start_ps) for start, end in busy)
                sums_ps[part] += busy_ps - before_ps
                before_ps = busy_ps
            other_ps += end_ps - start_ps - before_ps
            idle_ps += last_ps - end_ps
        return TimeParts(
            gemm_ps=sums_ps["gemm"] / count,
            vector_ps=sums_ps["vector"] / count,
            memory_ps=sums_ps["memory"] / count,
            message_ps=sums_ps["message"] / count,
            other_ps=other_ps / count,
            idle_ps=idle_ps / count,
        )


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals, sorted."""
    union = list[Interval]()
    for each in sorted(intervals):
        _append(union, each)
    return union


def _append(union: list[Interval], times: Interval) -> None:
    """Add an interval to a list; it becomes one with the last of the list where they meet."""
    start_ps, end_ps = times
    if union and union[-1][0] <= start_ps <= union[-1][1]:
        union[-1] = union[-1][0], max(union[-1][1], end_ps)
    else:
        union.append(times)


def _part(record: OpRecord) -> str:
    if record.engine == "pe_dma":
        return _REQUESTS.get(record.name, "")
    return _ENGINES.get(record.engine, "")
