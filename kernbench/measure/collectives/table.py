"""The report of `perf`: the table of nccl-tests with a bound, and its rows as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from coordinator.report.text_table import TextColumn, TextStyle, TextTable
from kernbench.benches.collective_perf.bound import TimeBound, mean
from kernbench.benches.collective_perf.collective import PerfCase, PerfParameters, rounded_sizes
from kernbench.measure.collectives.arguments import AVERAGES
from runtime.core.bench_registry import PerfRow
from runtime.core.output import write_output

PS_PER_US = 1_000_000
_FORM = (
    TextColumn("time\n(us)", width=7),
    TextColumn("algbw\n(GB/s)", width=6),
    TextColumn("busbw\n(GB/s)", width=6),
    TextColumn("#wrong\n", width=6, gap=1),
)
_COLUMNS = (
    TextColumn("size\n(B)", width=11),
    TextColumn("count\n(elements)", width=12),
    TextColumn("type\n", width=8),
    TextColumn("redop\n", width=6),
    TextColumn("root\n", width=6),
    *_FORM,
    *_FORM,
    TextColumn("bound\n(us)", width=7),
)
_STYLE = TextStyle(gap=2, heading_marks=("#", "#"), row_mark=" ")
_NOTHING = ("N/A",) * 4


@dataclass(frozen=True)
class PerfTableRow:
    """A row of the report. `time_ps` is the time of an iteration as `-a` selects it.

    `wrong` is the number of wrong elements on all ranks, None if they were not checked. `bound` is
    the bound of the same selection.
    """

    case: PerfCase
    algorithm: str
    time_ps: float
    wrong: int | None
    bound: TimeBound


def make_row(
    case: PerfCase,
    algorithm: str,
    rows: Sequence[PerfRow],
    average: int,
    bounds: Sequence[TimeBound],
) -> PerfTableRow:
    """The row of a case that `algorithm` executed, from the rows and bounds of all ranks."""
    # Ranks end a collective at different times; `-a` selects which of them counts.
    times_ps = [row.time_ps for row in rows]
    time_ps = (times_ps[0], sum(times_ps) / len(times_ps), min(times_ps), max(times_ps))[average]
    by_time = sorted(bounds, key=lambda bound: bound.time_ps)
    bound = (bounds[0], mean(bounds), by_time[0], by_time[-1])[average]
    wrong = [row.wrong for row in rows if row.wrong is not None]
    return PerfTableRow(
        case=case,
        algorithm=algorithm,
        time_ps=time_ps,
        wrong=sum(wrong) if len(wrong) == len(rows) else None,
        bound=bound,
    )


def parameter_lines(
    parameters: PerfParameters, average: int, ranks: int, algorithm: str, reason: str
) -> Iterator[str]:
    """The lines above the table: what is measured; `reason` states why on these cubes."""
    factor = parameters.step_factor
    step = f"{factor}(factor)" if factor > 1 else f"{parameters.step_bytes}(bytes)"
    yield (
        f"# {parameters.collective} ranks {ranks} minBytes {parameters.min_bytes} "
        f"maxBytes {parameters.max_bytes} step: {step} warmup iters: {parameters.warmup} "
        f"iters: {parameters.iters} validation: {parameters.check} average: {AVERAGES[average]}"
    )
    numbers = parameters.cube_numbers
    cubes = f"cube{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))} ({reason})"
    yield f"# algorithm {algorithm}, a buffer on up to {parameters.pes} PEs of {cubes}"
    if rounded := rounded_sizes(parameters, ranks):
        size, down = next(iter(rounded.items()))
        runs = f"runs with {down} B" if down else "has no row"
        yield f"# sizes are rounded down to whole elements of every rank: {size} B {runs}"
    yield "#"


def algorithm_text(requested: str, algorithm_of: Mapping[int, str]) -> str:
    """The requested algorithm; if it is a choice, also the algorithm of each range of sizes.

    `algorithm_of` maps a size in bytes to the algorithm that runs.
    """
    *limited, (last, _) = (
        (name, max(sizes))
        for name, sizes in groupby(sorted(algorithm_of), key=algorithm_of.__getitem__)
    )
    names = ", then ".join([*(f"{name} up to {size} B" for name, size in limited), last])
    return names if names == requested else f"{requested}: {names}"


def table_lines(rows: Sequence[PerfTableRow]) -> Iterator[str]:
    """Heading, rows, footnotes and the two lines of summary."""
    # nccl-tests measures both forms; here a collective has one of them, and the other is N/A.
    yield f"# {'':>52}  {'out-of-place':^30}  {'in-place':^30}".rstrip()
    text = TextTable(_COLUMNS, _STYLE)
    for row in rows:
        text.row(*_cells(row))
    yield from text.lines()
    yield from _footnotes(rows)
    wrong = [row.wrong for row in rows if row.wrong is not None]
    verdict = (
        f"{sum(wrong)} {'FAILED' if any(wrong) else 'OK'}"
        if len(wrong) == len(rows)
        else "N/A, nothing was checked"
    )
    yield f"# Out of bounds values : {verdict}"
    mean_gbs = sum(row.case.busbw_gbs(row.time_ps) for row in rows) / len(rows)
    yield f"# Avg bus bandwidth    : {mean_gbs:.6g}"
    yield "#"


def write_json(
    path: Path, parameters: PerfParameters, rows: Sequence[PerfTableRow], summary: Mapping[str, Any]
) -> None:
    """Write the `summary`, the parameters and the rows; times in us, bandwidths in GB/s.

    Raises `OutputError`.
    """
    content = {**summary, "request": asdict(parameters), "rows": [_named(row) for row in rows]}
    write_output(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def _cells(row: PerfTableRow) -> tuple[str, ...]:
    case = row.case
    measured = (
        _time(row.time_ps),
        f"{case.algbw_gbs(row.time_ps):.2f}",
        f"{case.busbw_gbs(row.time_ps):.2f}",
        "N/A" if row.wrong is None else str(row.wrong),
    )
    forms = (*_NOTHING, *measured) if case.collective.in_place else (*measured, *_NOTHING)
    labels = (str(case.size_bytes), str(case.count), case.dtype_name, case.op, str(case.root))
    return (*labels, *forms, _time(row.bound.time_ps))


def _time(time_ps: float) -> str:
    """Microseconds with the decimals of nccl-tests."""
    time_us = time_ps / PS_PER_US
    return (
        f"{time_us:.0f}"
        if time_us >= 10_000
        else f"{time_us:.1f}"
        if time_us >= 100
        else f"{time_us:.2f}"
    )


def _footnotes(rows: Sequence[PerfTableRow]) -> Iterator[str]:
    collective = rows[0].case.collective
    if collective.in_place:
        yield f"# out-of-place N/A: {collective.name} of torch.distributed works in place"
    else:
        yield (
            f"# in-place N/A: {collective.name} of torch.distributed "
            "has an input and an output of its own"
        )
    yield "# bound: no algorithm is faster on these links (docs/collectives.md)"


def _named(row: PerfTableRow) -> dict[str, Any]:
    case = row.case
    measured = {
        "time_us": row.time_ps / PS_PER_US,
        "algbw_gbs": case.algbw_gbs(row.time_ps),
        "busbw_gbs": case.busbw_gbs(row.time_ps),
        "wrong": row.wrong,
    }
    forms = (None, measured) if case.collective.in_place else (measured, None)
    return {
        "size_bytes": case.size_bytes,
        "count": case.count,
        "type": case.dtype_name,
        "redop": case.op,
        "root": case.root,
        "algorithm": row.algorithm,
        "out_of_place": forms[0],
        "in_place": forms[1],
        "bound_us": row.bound.time_ps / PS_PER_US,
        "bound_launch_us": row.bound.launch_ps / PS_PER_US,
        "bound_path_us": row.bound.path_ps / PS_PER_US,
        "bound_links_us": row.bound.links_ps / PS_PER_US,
    }
