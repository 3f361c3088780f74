"""The rule by which measured times become the rows of `selection.by_size.all_reduce` of `ccl.yaml`.

The file knows sizes, not numbers of ranks. So the time of an algorithm at a size is the geometric mean over all numbers of
ranks, which asks by what factor one is faster than the other. A time at most 2 % above the shortest one counts as that. Of all
tables that name one algorithm for each measured size, the chosen one has the smallest sum of the logarithms of these times,
then the fewest rows, then the smallest sum of the logarithms as they are. A row ends where the means of its algorithm and of
the next one cross, on straight lines in logarithms between the two sizes, rounded to two binary digits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import log, log2
from statistics import fmean, geometric_mean

from kernbench.studies.ccl_algorithms.rows import Row
from runtime.ccl.config import Choice

GAIN = 0.02
"""What a further row must gain at some size."""
Means = Mapping[str, Mapping[int, float]]
"""The logarithm of an algorithm's mean time at each size."""


@dataclass(frozen=True)
class Loss:
    """What calls lose by a table: `mean` and worst share of the time that they take more than by the fastest algorithm."""

    mean: float
    worst: float
    worst_row: Row


def chosen_table(rows: Sequence[Row]) -> tuple[Choice, ...]:
    """The rows of the selection, smallest sizes first; the last one has no limit."""
    means = mean_times(rows)
    runs = [
        (name, [nbytes for _, nbytes in run])
        for name, run in groupby(best_by_size(means), key=lambda of_size: of_size[0])
    ]
    limited = [
        Choice(
            algorithm=name,
            up_to_bytes=_limit(means[name], means[following], sizes[-1], next_sizes[0]),
        )
        for (name, sizes), (following, next_sizes) in pairwise(runs)
    ]
    return (*limited, Choice(algorithm=runs[-1][0]))


def mean_times(rows: Iterable[Row]) -> Means:
    """Algorithm -> size -> logarithm of the geometric mean of its times over all numbers of ranks."""
    times: dict[str, dict[int, list[int]]] = {}
    for row in rows:
        times.setdefault(row.algorithm, {}).setdefault(row.nbytes, []).append(row.time_ps)
    return {
        name: {nbytes: log(geometric_mean(of)) for nbytes, of in sorted(sizes.items())}
        for name, sizes in times.items()
    }


def best_by_size(means: Means) -> list[tuple[str, int]]:
    """(algorithm, size) for each size: the sequence with the least cost."""
    # For each algorithm, the best of all sequences for the sizes so far that end with it. Of equal ones `min` takes the first.
    ending = dict.fromkeys(means, _Sequence(0.0, 0, 0.0, ()))
    for nbytes in next(iter(means.values())):
        least = min(of[nbytes] for of in means.values())
        best = min(ending.values(), key=_Sequence.cost)
        changed = replace(best, changes=best.changes + 1)
        ending = {
            name: min(ending[name], changed, key=_Sequence.cost).followed_by(
                name, nbytes, of[nbytes] - least
            )
            for name, of in means.items()
        }
    return list(min(ending.values(), key=_Sequence.cost).choices)


@dataclass(frozen=True)
class _Sequence:
    """An algorithm for each size so far. What they lose against the fastest: `relevant` has the losses above `GAIN` alone."""

    relevant: float
    changes: int
    lost: float
    choices: tuple[tuple[str, int], ...]

    def cost(self) -> tuple[float, int, float]:
        return self.relevant, self.changes, self.lost

    def followed_by(self, name: str, nbytes: int, lost: float) -> "_Sequence":
        relevant = lost if lost > log(1 + GAIN) else 0.0
        return _Sequence(
            self.relevant + relevant,
            self.changes,
            self.lost + lost,
            (*self.choices, (name, nbytes)),
        )


def loss(rows: Sequence[Row], table: Sequence[Choice]) -> Loss:
    """What calls at the measured points lose by a table."""
    fastest = {
        (row.ranks, row.nbytes): row
        for row in sorted(rows, key=lambda row: row.time_ps, reverse=True)
    }
    run = [row for row in rows if row.algorithm == algorithm_for(table, row.nbytes)]
    shares = {row: row.time_ps / fastest[row.ranks, row.nbytes].time_ps - 1 for row in run}
    worst = max(shares, key=shares.__getitem__)
    return Loss(fmean(shares.values()), shares[worst], worst)


def algorithm_for(table: Sequence[Choice], nbytes: int) -> str:
    """What a table runs for a size."""
    return next(
        row.algorithm for row in table if row.up_to_bytes is None or nbytes <= row.up_to_bytes
    )


def as_yaml(table: Sequence[Choice]) -> list[str]:
    """The table as lines of `ccl.yaml`."""
    rows = (
        f"      - {{algorithm: {row.algorithm}}}"
        if row.up_to_bytes is None
        else f"      - {{up_to_bytes: {row.up_to_bytes}, algorithm: {row.algorithm}}}"
        for row in table
    )
    return ["selection:", "  by_size:", "    all_reduce:", *rows]


def _limit(of: Mapping[int, float], following: Mapping[int, float], last: int, first: int) -> int:
    """The size up to which the algorithm with the means `of` is used, between its last size and the first one of the other."""
    ahead, behind = following[last] - of[last], following[first] - of[first]
    crossing = ahead / (ahead - behind) if ahead > 0 > behind else float(ahead > 0)
    at = last * (first / last) ** crossing
    digit = 1 << max(int(log2(at)) - 1, 0)
    return min(round(at / digit) * digit, first * 3 // 4)
