"""All that `why` computes of one run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernbench.explain.records import RecordedRun
from kernbench.explain.why.bound import RunBound, run_bound
from kernbench.explain.why.breakdown import PeTime, RankTime, pe_times, rank_time
from kernbench.explain.why.cursor import RunIndex
from kernbench.explain.why.kernel_times import KernelTime, kernel_times
from kernbench.explain.why.load import Load, loads
from kernbench.explain.why.parts import TimePart
from kernbench.explain.why.path import CriticalPath, critical_path
from kernbench.explain.why.path_jitter import with_jitter
from runtime.core.errors import UsageError


@dataclass(frozen=True)
class Explanation:
    """The parts of the time of a run, by rank, by PE, along the critical path, by kernel and by
    resource.
    """

    records: RecordedRun
    ranks: Sequence[RankTime]
    pes: Sequence[PeTime]
    path: CriticalPath
    kernels: Sequence[KernelTime]
    loads: Mapping[str, Sequence[Load]]
    bound: RunBound

    @property
    def total_ps(self) -> int:
        """The time of the run."""
        return self.records.total_ps

    @property
    def mean_parts_ps(self) -> dict[TimePart, int]:
        """The mean of each part over the ranks, rounded down."""
        return {
            part: sum(rank.parts_ps[part] for rank in self.ranks) // len(self.ranks)
            for part in TimePart
        }


def explain(records: RecordedRun, index: RunIndex | None = None) -> Explanation:
    """The explanation of a run. Raises `UsageError` for one that has not finished.

    `index` is that of the records, if there is one already.
    """
    require_finished(records)
    index = index or RunIndex.of(records)
    return Explanation(
        records=records,
        ranks=[rank_time(records, sip) for sip in records.sips],
        pes=[pe for sip in records.sips for pe in pe_times(records, sip)],
        path=with_jitter(records, critical_path(records, index)),
        kernels=kernel_times(records),
        loads=loads(records),
        bound=run_bound(records, index),
    )


def require_finished(records: RecordedRun) -> None:
    """Raise `UsageError` for a run that ended with an error."""
    if records.run.error is not None:
        raise UsageError(
            f"{records.name}: the run failed, and why explains runs that ended: "
            f"{records.run.error.splitlines()[0]}"
        )
