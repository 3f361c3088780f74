"""The rule that turns measured times into `selection.by_size.all_reduce` of `ccl.yaml`.

The file selects by size, not by the number of ranks. So the time of an algorithm at a size is the
geometric mean over all numbers of ranks: means of factors compare algorithms independently of how
long a call takes. A time at most 2 % above the shortest counts as equal to it.

Of all tables with one algorithm for each measured size, the selected one has the smallest sum of
logarithms of these times, then the fewest rows, then the smallest sum of the unrounded logarithms.
A row ends where the means of its algorithm and of the next cross, on straight lines in logarithms
between the two sizes, rounded to two binary digits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import log, log2
from statistics import fmean, geometric_mean

from kernbench.studies.ccl_algorithms.rows import AlgorithmRow
from runtime.ccl.config import Choice

GAIN = 0.02
"""Least gain at some size that justifies a further row."""
Means = Mapping[str, Mapping[int, float]]
"""The logarithm of an algorithm's mean time at each size."""


@dataclass(frozen=True)
class SelectionLoss:
    """Excess of a table's times over those of the fastest algorithm: mean and worst share."""

    mean: float
    worst: float
    worst_row: AlgorithmRow


def selected_table(rows: Sequence[AlgorithmRow]) -> tuple[Choice, ...]:
    """The rows of the selection, smallest sizes first; the last row has no limit."""
    means = mean_times(rows)
    # Successive sizes with one algorithm become one row.
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


def mean_times(rows: Iterable[AlgorithmRow]) -> Means:
    """Algorithm -> size -> logarithm of the geometric mean of its times over numbers of ranks."""
    times: dict[str, dict[int, list[int]]] = {}
    for row in rows:
        times.setdefault(row.algorithm, {}).setdefault(row.nbytes, []).append(row.time_ps)
    return {
        name: {nbytes: log(geometric_mean(each)) for nbytes, each in sorted(sizes.items())}
        for name, sizes in times.items()
    }


def best_by_size(means: Means) -> list[tuple[str, int]]:
    """(algorithm, size) for each size: the sequence of algorithms with the least cost."""
    # Viterbi's algorithm: for each algorithm, the best sequence for the sizes so far that ends with
    # it. Of equal sequences `min` takes the first, so the order of `ccl.yaml` decides.
    ending = dict.fromkeys(means, _Assignment(0.0, 0, 0.0, ()))
    for nbytes in next(iter(means.values())):
        least = min(each[nbytes] for each in means.values())
        best = min(ending.values(), key=_Assignment.cost)
        # A change can start from any sequence, so it starts from the best of all.
        changed = replace(best, changes=best.changes + 1)
        ending = {
            name: min(ending[name], changed, key=_Assignment.cost).followed_by(
                name, nbytes, each[nbytes] - least
            )
            for name, each in means.items()
        }
    return list(min(ending.values(), key=_Assignment.cost).choices)


@dataclass(frozen=True)
class _Assignment:
    """An algorithm for each size so far, and its cost.

    `lost` sums the logarithms of time over shortest time, `relevant` only those above `GAIN`.
    """

    relevant: float
    changes: int
    lost: float
    choices: tuple[tuple[str, int], ...]

    def cost(self) -> tuple[float, int, float]:
        # Compared in this order: a gain above 2 % justifies a row, a smaller gain does not.
        return self.relevant, self.changes, self.lost

    def followed_by(self, name: str, nbytes: int, lost: float) -> "_Assignment":
        relevant = lost if lost > log(1 + GAIN) else 0.0
        return _Assignment(
            self.relevant + relevant,
            self.changes,
            self.lost + lost,
            (*self.choices, (name, nbytes)),
        )


def loss(rows: Sequence[AlgorithmRow], table: Sequence[Choice]) -> SelectionLoss:
    """The excess of a table's times at the measured points."""
    # In descending order of time: of equal keys a dict keeps the last, which is the fastest.
    fastest = {
        (row.ranks, row.nbytes): row
        for row in sorted(rows, key=lambda row: row.time_ps, reverse=True)
    }
    run = [row for row in rows if row.algorithm == algorithm_for(table, row.nbytes)]
    shares = {row: row.time_ps / fastest[row.ranks, row.nbytes].time_ps - 1 for row in run}
    worst = max(shares, key=shares.__getitem__)
    return SelectionLoss(fmean(shares.values()), shares[worst], worst)


def algorithm_for(table: Sequence[Choice], nbytes: int) -> str:
    """The algorithm that a table selects for a size."""
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


def _limit(own: Mapping[int, float], following: Mapping[int, float], last: int, first: int) -> int:
    """The limit of a row: between its `last` size and the `first` size of the following row.

    `own` and `following` are the means of the two algorithms.
    """
    # Logarithms of the time ratio at both sizes: positive where this algorithm is faster.
    ahead, behind = following[last] - own[last], following[first] - own[first]
    # Without a sign change the means do not cross between the two sizes: the limit is at the end
    # where they are closer, since 2 % count as equal.
    crossing = ahead / (ahead - behind) if ahead > 0 > behind else float(ahead > 0)
    at = last * (first / last) ** crossing
    # Two binary digits, and never as far as `first`, which the following algorithm won.
    digit = 1 << max(int(log2(at)) - 1, 0)
    return min(round(at / digit) * digit, first * 3 // 4)
