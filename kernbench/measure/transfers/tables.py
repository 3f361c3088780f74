"""The tables of `probe`: a table per group of cases, sweeps over sizes, and the hops of a route."""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from coordinator.report.text_table import TextStyle, TextTable, print_table, text_columns
from kernbench.measure.transfers.cases import NAMES
from kernbench.measure.transfers.measure import ProbeRow
from runtime.core.simtime import ns_from_ps

STYLE = TextStyle(gap=1, ruled=True)
CASE_COLUMNS = ("<case", "<op", "<memory")
RATE_COLUMNS = ("effective\n(GB/s)", "< bottleneck", "limit\n(GB/s)", "used\n(%)")
GROUP_COLUMNS = text_columns(
    *CASE_COLUMNS,
    "overhead\n(ns)",
    "wire\n(ns)",
    "drain\n(ns)",
    "computed\n(ns)",
    "",
    "measured\n(ns)",
    *RATE_COLUMNS,
)
SWEEP_COLUMNS = text_columns(
    *CASE_COLUMNS, "size\n(B)", "computed\n(ns)", "", "measured\n(ns)", *RATE_COLUMNS
)
TRACE_COLUMNS = text_columns(
    "<leg",
    "<into",
    "overhead\n(ns)",
    "wire\n(ns)",
    "link\n(GB/s)",
    "drain\n(ns)",
    "head at\n(ns)",
    "tail at\n(ns)",
)


def print_groups(rows: Iterable[ProbeRow]) -> None:
    """A table per group of cases: the parts of the time, and the effective bandwidth."""
    for group, members in _by_group(rows):
        table = TextTable(GROUP_COLUMNS, STYLE)
        for row in members:
            parts = map(_ns, (row.form.overhead_ps, row.form.wire_ps, row.form.drain_ps))
            table.row(*_case(row), *parts, *_result(row), faulty=not row.agrees)
        print_table(table, f"{group}, {_size(members[0].transfer.nbytes)}")


def print_sweeps(rows: Iterable[ProbeRow]) -> None:
    """A table per group of cases, with the sizes of each case one below the other."""
    for group, members in _by_group(rows):
        table = TextTable(SWEEP_COLUMNS, STYLE)
        for row, following in pairwise((*members, None)):
            assert row is not None
            size = str(row.transfer.nbytes)
            table.row(*_case(row), size, *_result(row), faulty=not row.agrees)
            if following and _case(following) != _case(row):
                table.end_group()
        print_table(table, f"{group}, saturation")


def print_trace(row: ProbeRow) -> None:
    """The hops of a transfer with the time of its head, and the last byte of each leg."""
    table, now_ps = TextTable(TRACE_COLUMNS, STYLE), 0
    for leg in row.form.legs:
        for hop in leg.hops:
            now_ps += hop.overhead_ps + hop.wire_ps
            gbs = f"{float(hop.link.bw_gbs):g}" if hop.link else ""
            delays = _ns(hop.overhead_ps), _ns(hop.wire_ps)
            table.row(leg.name, hop.node, *delays, gbs, "", _ns(now_ps), "")
        # The head is at the end of the route; the last byte follows one drain later.
        now_ps += leg.drain_ps
        slowest = leg.bottleneck
        last = f"last byte, held up by: {slowest.label} {float(slowest.bw_gbs):g} GB/s"
        table.row(leg.name, last, "", "", "", _ns(leg.drain_ps), "", _ns(now_ps))
        table.end_group()
    case, size = " ".join(_case(row)[:2]), _size(row.transfer.nbytes)
    title = f"{case}, {row.transfer.case.memory}, {size}"
    print_table(table, f"{title}: measured {_ns(row.measured_ps)} ns")


def judgement(rows: Sequence[ProbeRow]) -> str:
    """One line: whether simulated times and closed forms agree."""
    wrong = sum(not row.agrees for row in rows)
    bounds = sum(not row.form.exact for row in rows)
    if wrong:
        return f"{wrong} of {len(rows)} transfers differ from their closed form (marked ≠)"
    if bounds:
        exact = f"{len(rows)} transfers: {len(rows) - bounds} as the closed form"
        return f"{exact}, {bounds} not below their lower bound (marked <=)"
    return f"{len(rows)} transfers: measured = closed form, to the picosecond"


def _by_group(rows: Iterable[ProbeRow]) -> Iterable[tuple[str, list[ProbeRow]]]:
    groups = groupby(rows, key=lambda row: NAMES[row.transfer.case.name])
    return ((group, list(members)) for group, members in groups)


def _case(row: ProbeRow) -> tuple[str, str, str]:
    """The cells of `CASE_COLUMNS`."""
    return row.transfer.case.name, row.transfer.direction, row.transfer.case.memory


def _result(row: ProbeRow) -> tuple[str, ...]:
    """The cells from `computed` to the last one."""
    bottleneck = row.form.bottleneck
    return (
        _ns(row.form.total_ps),
        _verdict(row),
        _ns(row.measured_ps),
        f"{row.gbs:.2f}",
        f" {bottleneck.label}",
        f"{float(bottleneck.bw_gbs):g}",
        f"{100 * row.utilisation:.1f}",
    )


def _ns(ps: int) -> str:
    return f"{ns_from_ps(ps):.3f}"


def _verdict(row: ProbeRow) -> str:
    if not row.agrees:
        return "≠"
    return "=" if row.form.exact else "<="


def _size(nbytes: int) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes % size == 0:
            return f"{nbytes // size} {unit}"
    return f"{nbytes} B"
