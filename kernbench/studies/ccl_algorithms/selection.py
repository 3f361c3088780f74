"""The rule that turns measured times into `selection.by_size` of `ccl.yaml`.

Each collective has tables by size, one for every few numbers of ranks. Within a table, the time of
an algorithm at a size is the geometric mean over its numbers of ranks: means of factors compare
algorithms independently of how long a call takes. A time at most 2 % above the shortest counts as
equal to it. Two ranks have a table of their own; from three on, the next number joins a table where
that makes the calls at most 2 % longer on the mean than a table of its own, and none 10 % longer
than by the fastest algorithm. Numbers with equal tables share them.

Of all tables with one algorithm for each measured size, the selected one has the smallest sum of
logarithms of these times, then the fewest rows, then the smallest sum of the unrounded logarithms.
A row ends where the means of its algorithm and of the next cross, on straight lines in logarithms
between the two sizes, rounded to two binary digits.

Some algorithms need SIPs in rows and columns, and use more links where a tensor lies on several
cubes. They are compared with the algorithms that the selection has on rings. Such an algorithm has
a row before the others, from the least size on above which it is nowhere more than 2 % slower than
the fastest one, on every grid and number of cubes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import log, log2
from statistics import fmean, geometric_mean

import msgspec

from kernbench.studies.ccl_algorithms.rows import BASELINES, AlgorithmRow
from runtime.ccl.selection import Choice, matching_row

AS_FAST = 0.02
"""The excess of a time that counts as equal, on grids."""
GAIN = 0.02
"""Least gain at some size that justifies a further row."""
PAIR = 2
"""Two ranks have a table of their own: their only step is an exchange, in every algorithm."""
MOST_LOST = 0.1
"""The most that a call may take longer than by the fastest algorithm, for numbers of ranks to share
a table, unless tables of their own lose as much."""
Means = Mapping[str, Mapping[int, float]]
"""The logarithm of an algorithm's mean time at each size."""


@dataclass(frozen=True)
class SelectionLoss:
    """Excess of a table's times over those of the fastest algorithm: mean and worst share."""

    mean: float
    worst: float
    worst_row: AlgorithmRow


def selected_table(rows: Sequence[AlgorithmRow]) -> tuple[Choice, ...]:
    """The rows of the selection for one collective, smallest numbers of ranks and sizes first; the
    last row has no limit.
    """
    ranks = sorted({row.ranks for row in rows})
    groups = [[ranks[0]]]
    for count in ranks[1:]:
        if _is_one_table(rows, groups[-1], count):
            groups[-1].append(count)
        else:
            groups.append([count])
    limited = [row for group in groups[:-1] for row in _limited(rows, group)]
    return (*limited, *_table_by_size(_of(rows, groups[-1])))


def _is_one_table(rows: Sequence[AlgorithmRow], group: Sequence[int], count: int) -> bool:
    """Whether a number of ranks shares the table of a group of smaller numbers."""
    if _table_by_size(_of(rows, group)) == _table_by_size(_of(rows, [count])):
        return True
    joined = _of(rows, [*group, count])
    apart = [*_limited(rows, group), *_table_by_size(_of(rows, [count]))]
    together, own = loss(joined, _table_by_size(joined)), loss(joined, apart)
    return (
        list(group) != [PAIR]
        and together.mean <= own.mean + GAIN
        and together.worst <= max(own.worst, MOST_LOST)
    )


def _of(rows: Sequence[AlgorithmRow], ranks: Sequence[int]) -> list[AlgorithmRow]:
    return [row for row in rows if row.ranks in ranks]


def _limited(rows: Sequence[AlgorithmRow], ranks: Sequence[int]) -> list[Choice]:
    table = _table_by_size(_of(rows, ranks))
    return [msgspec.structs.replace(row, up_to_ranks=max(ranks)) for row in table]


def _table_by_size(rows: Sequence[AlgorithmRow]) -> tuple[Choice, ...]:
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


def tables_of(rows: Sequence[AlgorithmRow]) -> dict[str, tuple[Choice, ...]]:
    """The tables by collective. An all-gather to a list of tensors has that of one tensor."""
    tables = dict[str, tuple[Choice, ...]]()
    for collective in dict.fromkeys(row.collective for row in rows):
        tables[collective] = selected_table(candidates(rows, collective))
        if collective == "all_reduce":
            tables[collective] = (*grid_choices(rows), *tables[collective])
        if collective == "all_gather_into_tensor":
            tables["all_gather"] = tables[collective]
    return tables


def candidates(rows: Sequence[AlgorithmRow], collective: str) -> list[AlgorithmRow]:
    """The rows of a collective on rings, by algorithms that can be selected."""
    return [
        row
        for row in rows
        if row.collective == collective and row.algorithm not in BASELINES and not row.grid
    ]


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
    fastest = {row.call: row for row in sorted(rows, key=lambda row: row.time_ps, reverse=True)}
    run = [row for row in rows if row.algorithm == algorithm_for(table, row)]
    shares = {row: row.time_ps / fastest[row.call].time_ps - 1 for row in run}
    worst = max(shares, key=shares.__getitem__)
    return SelectionLoss(fmean(shares.values()), shares[worst], worst)


def algorithm_for(table: Sequence[Choice], point: AlgorithmRow) -> str:
    """The algorithm that a table selects for the size and the ranks of a row."""
    row = matching_row(table, point.call)
    assert row is not None, "the last row of a table has no limit"
    return row.algorithm


def as_yaml(tables: Mapping[str, Sequence[Choice]]) -> list[str]:
    """The tables by collective as lines of `ccl.yaml`."""
    lines = ["selection:", "  by_size:"]
    for collective, table in tables.items():
        lines.append(f"    {collective}:")
        lines += [f"      - {{{_cells(row)}}}" for row in table]
    return lines


def _cells(row: Choice) -> str:
    limits = (
        ("up_to_ranks", row.up_to_ranks),
        ("up_to_bytes", row.up_to_bytes),
        ("from_bytes", row.from_bytes),
        ("from_cubes", row.from_cubes),
        ("on_grid", "true" if row.on_grid else None),
    )
    cells = [f"{key}: {limit}" for key, limit in limits if limit is not None]
    return ", ".join([*cells, f"algorithm: {row.algorithm}"])


def _limit(own: Mapping[int, float], following: Mapping[int, float], last: int, first: int) -> int:
    """The limit of a row: between its `last` size and the `first` size of the following row.

    `own` and `following` are the means of the two algorithms.
    """
    # Logarithms of the time ratio at both sizes: positive where this algorithm is faster.
    ahead, behind = following[last] - own[last], following[first] - own[first]
    # Without a sign change the means do not cross between the two sizes: the limit is at the end
    # where they are closer, since 2 % count as equal.
    crossing = ahead / (ahead - behind) if ahead > 0 > behind else float(ahead > 0)
    crossing_bytes = last * (first / last) ** crossing
    # Two binary digits, and never as far as `first`, which the following algorithm won.
    digit = 1 << max(int(log2(crossing_bytes)) - 1, 0)
    return min(round(crossing_bytes / digit) * digit, first * 3 // 4)


def grid_choices(rows: Sequence[AlgorithmRow]) -> tuple[Choice, ...]:
    """The rows of the selection for algorithms that rings do not have, at most one for each."""
    on_rings = {row.algorithm for row in rows if not row.grid}
    on_grids = [row for row in rows if row.grid]
    names = dict.fromkeys(row.algorithm for row in on_grids if row.algorithm not in on_rings)
    sizes = {name: _first_size(on_grids, name) for name in names}
    return tuple(
        Choice(
            algorithm=name,
            from_bytes=nbytes,
            from_cubes=min(row.cubes for row in on_grids),
            on_grid=True,
        )
        for name, nbytes in sizes.items()
        if nbytes is not None
    )


def _first_size(rows: Sequence[AlgorithmRow], name: str) -> int | None:
    """The least size from which on an algorithm is everywhere as fast as the fastest one."""
    first: int | None = None
    for nbytes in sorted({row.nbytes for row in rows}, reverse=True):
        of_size = [row for row in rows if row.nbytes == nbytes]
        own = {(row.grid, row.cubes): row.time_ps for row in of_size if row.algorithm == name}
        if any(own[row.grid, row.cubes] > (1 + AS_FAST) * row.time_ps for row in of_size):
            break
        first = nbytes
    return first
