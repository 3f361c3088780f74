"""Summary at the end of a run: one line with the parts of its time, or five lines."""

from collections.abc import Iterable, Iterator, Sequence

from kernbench.explain.records import RunRecords
from kernbench.explain.why.bound import bound_line, run_bound
from kernbench.explain.why.breakdown import RankTime, rank_time
from kernbench.explain.why.cursor import RunIndex
from kernbench.explain.why.load import Load, busiest, loads
from kernbench.explain.why.parts import TimePart
from kernbench.explain.why.path import critical_path
from kernbench.explain.why.shares import PathShare, by_kind, by_line, shares

_LABEL_COLUMNS = 16
_SHOWN = 3


def summary_lines(records: RunRecords, *, verbose: bool = False) -> Iterator[str]:
    """The parts of the time of a run that has taken any.

    With `verbose` also its critical path by kinds and by source lines, its busiest resources, and
    its bound.
    """
    total_ps = records.total_ps
    if not total_ps:
        return
    spent = time_shares([rank_time(records, sip) for sip in records.sips])
    yield _line("time spent", ", ".join(f"{part.title} {spent[part]:.1f} %" for part in spent))
    if not verbose:
        return
    index = RunIndex.of(records)
    pieces = critical_path(records, index).pieces
    resources = loads(records, 1)
    yield _line("critical path", _listed(shares(pieces, by_kind), total_ps))
    yield _line("source lines", _listed(shares(pieces, by_line), total_ps))
    yield _line("busiest", _busiest([each for of in resources.values() for each in of], total_ps))
    yield bound_line(run_bound(records, index, busiest(resources)))


def time_shares(ranks: Sequence[RankTime]) -> dict[TimePart, float]:
    """The mean of each part over the ranks, in percent of a time that is not zero."""
    total_ps = sum(rank.total_ps for rank in ranks)
    return {part: 100 * sum(rank.parts_ps[part] for rank in ranks) / total_ps for part in TimePart}


def _busiest(resources: Sequence[Load], total_ps: int) -> str:
    ordered = sorted(resources, key=lambda load: -load.busy_ps)[:_SHOWN]
    return ", ".join(
        f"{load.noun} {load.title} {_percent(load.busy_ps, total_ps)}" for load in ordered
    )


def _listed(summed: Iterable[PathShare], total_ps: int) -> str:
    return ", ".join(
        f"{share.name} {_percent(share.length_ps, total_ps)}" for share in list(summed)[:_SHOWN]
    )


def _percent(part_ps: int, total_ps: int) -> str:
    return f"{100 * part_ps / total_ps:.1f} %"


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL_COLUMNS}}{text}"
