"""Prints the explanation of a run as tables."""

from collections.abc import Iterator, Mapping, Sequence

from coordinator.report.text_table import TextColumn, TextStyle, TextTable, text_columns
from kernbench.explain.records import RecordedRun
from kernbench.explain.why.bound import bound_line
from kernbench.explain.why.breakdown import PeTime, worst
from kernbench.explain.why.explanation import Explanation
from kernbench.explain.why.kernel_times import KernelTime
from kernbench.explain.why.load import ENGINE, TRANSFER_ENGINE, Load
from kernbench.explain.why.parts import TimePart
from kernbench.explain.why.path import CriticalPath
from kernbench.explain.why.piece import PathPiece
from kernbench.explain.why.shares import PathShare, by_component, by_kind, by_line, longest, shares
from kernbench.explain.why.what_if import Prediction
from runtime.core.simtime import PS_PER_NS, format_ps

STYLE = TextStyle(gap=2, heading_marks=("# ", "  "), row_mark="  ")
SHOWN = 10
LEAST_SHARE = 1000
"""Kernels with a smaller part of the time of all kernels are not shown."""
_KIND_TITLES = {
    "link": "links",
    "memory": "memory channels",
    "port": "ports",
    ENGINE: "engines",
    TRANSFER_ENGINE: "transfer engines",
}


def heading_lines(records: RecordedRun) -> Iterator[str]:
    """The program and the machine of a run, and its error if it has failed."""
    run = records.run
    flags = "".join(f" --{key.replace('_', '-')} {run.arguments[key]}" for key in run.arguments)
    arguments = "".join(f" {each}" for each in run.argv)
    yield f"# why {records.name}: {run.bench}{flags}{arguments}"
    yield f"# {run.sips} SIPs, {format_ps(run.total_ps)}, digest {run.digest[:16]}"
    if run.error is not None:
        yield "# the run failed; this is what it recorded until then:"
        yield from (f"#   {line}" for line in run.error.splitlines())
    yield ""


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """All tables of one run."""
    yield from rank_lines(explanation)
    yield from pe_lines(explanation.pes)
    yield from path_lines(explanation.path)
    yield from kernel_lines(explanation.kernels)
    yield from load_lines(explanation.loads, explanation.total_ps)
    yield bound_line(explanation.bound)


def rank_lines(explanation: Explanation) -> Iterator[str]:
    """The parts of the time of each rank, in nanoseconds and as a share."""
    yield "where the time of each rank went (ns)"
    heads = [f"{part.title.replace(' ', chr(10), 1)}" for part in TimePart]
    columns = [TextColumn("rank"), TextColumn("total")]
    for head in heads:
        columns += [TextColumn(head), TextColumn("%", gap=1)]
    table = TextTable(columns, STYLE)
    for rank in explanation.ranks:
        cells = [str(rank.sip), ns(rank.total_ps)]
        for part in TimePart:
            cells += [ns(rank.parts_ps[part]), percent(rank.parts_ps[part], rank.total_ps)]
        table.row(*cells)
    yield from table.lines()
    yield ""


def pe_lines(pes: Sequence[PeTime]) -> Iterator[str]:
    """The parts of the time of the kernels: the mean over the PEs, and the worst PE."""
    if not pes:
        return
    yield f"where the time of kernels went (ns), {len(pes)} PEs"
    titles = ["issue", "compute", "memory", "communication", "launch"]
    table = TextTable(text_columns("<PE", "kernels", *titles), STYLE)
    sums = [sum(column) for column in zip(*(_pe_cells(pe) for pe in pes), strict=True)]
    table.row("mean", *(ns(each // len(pes)) for each in sums))
    if (slowest := worst(pes)) is not None:
        name = f"worst: sip{slowest.sip}.cube{slowest.cube}.pe{slowest.pe}"
        table.row(name, *map(ns, _pe_cells(slowest)))
    yield from table.lines()
    yield ""


def _pe_cells(pe: PeTime) -> list[int]:
    return [pe.kernel_ps, pe.issue_ps, *pe.parts_ps.values()]


def path_lines(path: CriticalPath) -> Iterator[str]:
    """The critical path: its sums by kind, line and component, and its longest pieces."""
    yield f"critical path: {len(path.pieces):,} pieces, {format_ps(path.total_ps)}"
    if path.unexplained_ps:
        yield f"  unexplained: {format_ps(path.unexplained_ps)}"
    for title, key in (("kind", by_kind), ("source line", by_line), ("component", by_component)):
        yield from share_lines(title, shares(path.pieces, key)[:SHOWN], path.total_ps)
    yield from piece_lines(longest(path.pieces))


def share_lines(title: str, sums: Sequence[PathShare], total_ps: int) -> Iterator[str]:
    """Sums of the path, the largest first."""
    table = TextTable(text_columns(f"<by {title}", "ns", "%", "pieces"), STYLE)
    for share in sums:
        table.row(
            share.name, ns(share.length_ps), percent(share.length_ps, total_ps), f"{share.pieces:,}"
        )
    yield from table.lines()
    yield ""


def piece_lines(pieces: Sequence[PathPiece]) -> Iterator[str]:
    """Pieces of the path one by one."""
    yield "longest pieces of the critical path (ns)"
    table = TextTable(
        text_columns("from", "length", "<kind", "<component", "<what", "<line"), STYLE
    )
    for piece in pieces:
        what = f"{piece.what} ({piece.cause})" if piece.cause else piece.what
        component = by_component(piece)
        table.row(ns(piece.begin_ps), ns(piece.length_ps), piece.kind, component, what, piece.line)
    yield from table.lines()
    yield ""


def kernel_lines(kernels: Sequence[KernelTime]) -> Iterator[str]:
    """The kernels with the sums of their launches, the longest first."""
    if not kernels:
        return
    total_ps = sum(each.time_ps for each in kernels)
    yield "launches of each kernel, from the first begin to the last end of its PEs (ns)"
    table = TextTable(text_columns("<name", "time", "launches", "mean", "longest", "PEs"), STYLE)
    for each in kernels:
        if each.time_ps * LEAST_SHARE < total_ps:
            break
        table.row(
            each.name,
            ns(each.time_ps),
            f"{each.launches:,}",
            ns(each.time_ps // each.launches),
            ns(each.longest_ps),
            f"{each.pes:,}",
        )
    yield from table.lines()
    yield ""


def load_lines(loads: Mapping[str, Sequence[Load]], total_ps: int) -> Iterator[str]:
    """The busiest resources of each kind."""
    for kind, busiest in loads.items():
        yield f"busiest {_KIND_TITLES.get(kind, kind)} (ns)"
        headings = ("<name", "busy", "%", "queued", "count", "bytes", "peak %", "at")
        table = TextTable(text_columns(*headings), STYLE)
        for load in busiest:
            table.row(
                load.title,
                ns(load.busy_ps),
                percent(load.busy_ps, total_ps),
                ns(load.queued_ps),
                f"{load.count:,}",
                f"{load.nbytes:,}",
                f"{100 * load.peak:.1f}",
                ns(load.peak_ps),
            )
        yield from table.lines()
        yield ""


def prediction_lines(
    predictions: Sequence[Prediction], total_ps: int, *, absorbed: bool = False
) -> Iterator[str]:
    """Lines on the time of the run with other numbers: predicted, and simulated where checked.

    With `absorbed`, also the prediction in which waits absorb changes, where it is another one.
    """
    if not predictions:
        return
    columns = {"predicted": [each.predicted_ps for each in predictions]}
    if absorbed and any(each.absorbed_ps != each.predicted_ps for each in predictions):
        columns["absorbed"] = [each.absorbed_ps for each in predictions]
    simulated = [each.simulated_ps for each in predictions if each.simulated_ps is not None]
    if len(simulated) == len(predictions):
        columns["simulated"] = simulated
    yield ""
    exact = "simulated is exact" if simulated else "--check simulates these machines"
    yield f"what if (ns): predicted is an estimate, {exact}"
    headings = ["<number", "before", "after", *(each for title in columns for each in (title, "%"))]
    table = TextTable(text_columns(*headings), STYLE)
    for row, each in enumerate(predictions):
        change = each.change
        cells = [change.key, f"{change.before:g}", f"{change.after:g}"]
        for changes_ps in columns.values():
            cells += [signed(changes_ps[row]), percent(changes_ps[row], total_ps)]
        table.row(*cells)
    yield from table.lines()


def ns(time_ps: int) -> str:
    """A time in nanoseconds, to the picosecond."""
    return f"{time_ps / PS_PER_NS:,.3f}"


def signed(time_ps: int) -> str:
    """A difference in nanoseconds with its sign."""
    return f"{'+' if time_ps > 0 else ''}{ns(time_ps)}"


def percent(part_ps: int, total_ps: int) -> str:
    """A share in percent."""
    return f"{100 * part_ps / total_ps:.1f}" if total_ps else "0.0"
