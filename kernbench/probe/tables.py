"""What `probe` prints: a table for each group of cases, sweeps, and the hops of a way."""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from rich import box
from rich.console import Console
from rich.table import Table

from kernbench.probe.cases import NAMES
from kernbench.probe.measure import ProbeRow
from runtime.core.simtime import ns_from_ps

MIN_WIDTH = 120
"""Columns a table may have. Where the output has fewer, its lines are longer; nothing is cut off."""


class Printer:
    """Writes to the standard output: with rules and colours on a terminal, plain text elsewhere."""

    def __init__(self) -> None:
        console = Console(highlight=False)
        self._console = Console(highlight=False, width=max(console.width, MIN_WIDTH))

    def line(self, text: str = "") -> None:
        """One line as it is."""
        self._console.print(text, markup=False, soft_wrap=True)

    def groups(self, rows: Iterable[ProbeRow]) -> None:
        """The rows in a table for each group: where the time goes, and what it is worth."""
        for group, members in _by_group(rows):
            self._table(_group_table(group, members))

    def sweeps(self, rows: Iterable[ProbeRow]) -> None:
        """The rows in a table for each group, the sizes of a case below each other."""
        for group, members in _by_group(rows):
            self._table(_sweep_table(group, members))

    def trace(self, row: ProbeRow) -> None:
        """Every hop of a transfer with the time of its head, and the last byte at the end of each leg."""
        self._table(_trace_table(row))

    def _table(self, table: Table) -> None:
        """A table and an empty line, without the spaces that fill its lines up."""
        with self._console.capture() as drawn:
            self._console.print(table)
        print("\n".join(line.rstrip() for line in drawn.get().splitlines()), end="\n\n")


def judgement(rows: Sequence[ProbeRow]) -> str:
    """One line: whether measurements and closed forms agree."""
    wrong = sum(not row.agrees for row in rows)
    bounds = sum(not row.form.exact for row in rows)
    if wrong:
        return f"{wrong} of {len(rows)} transfers differ from their closed form (marked ≠)"
    if bounds:
        return f"{len(rows)} transfers: {len(rows) - bounds} as the closed form, {bounds} not below their lower bound (marked <=)"
    return f"{len(rows)} transfers: measured = closed form, to the picosecond"


def _by_group(rows: Iterable[ProbeRow]) -> Iterable[tuple[str, list[ProbeRow]]]:
    return (
        (group, list(members))
        for group, members in groupby(rows, key=lambda row: NAMES[row.transfer.case.name])
    )


def _group_table(group: str, rows: Sequence[ProbeRow]) -> Table:
    table = _table(
        f"{group}, {_size(rows[0].transfer.nbytes)}",
        *(
            "<case",
            "<op",
            "<memory",
            "overhead\n(ns)",
            "wire\n(ns)",
            "drain\n(ns)",
            "computed\n(ns)",
            "",
            "measured\n(ns)",
        ),
        *("effective\n(GB/s)", "< bottleneck", "limit\n(GB/s)", "used\n(%)"),
    )
    for row in rows:
        case, form = row.transfer.case, row.form
        parts = map(_ns, (form.overhead_ps, form.wire_ps, form.drain_ps, form.total_ps))
        table.add_row(
            case.name,
            row.transfer.direction,
            case.memory,
            *parts,
            _verdict(row),
            _ns(row.measured_ps),
            f"{row.gbs:.2f}",
            f" {form.bottleneck.label}",
            f"{float(form.bottleneck.bw_gbs):g}",
            f"{100 * row.utilisation:.1f}",
            style="" if row.agrees else "red",
        )
    return table


def _sweep_table(group: str, rows: Sequence[ProbeRow]) -> Table:
    table = _table(
        f"{group}, saturation",
        *(
            "<case",
            "<op",
            "<memory",
            "size\n(B)",
            "computed\n(ns)",
            "",
            "measured\n(ns)",
            "effective\n(GB/s)",
        ),
        *("< bottleneck", "limit\n(GB/s)", "used\n(%)"),
    )
    for row, following in pairwise((*rows, None)):
        assert row is not None
        case, bottleneck = row.transfer.case, row.form.bottleneck
        last = following is None or (following.transfer.case, following.transfer.direction) != (
            case,
            row.transfer.direction,
        )
        table.add_row(
            case.name,
            row.transfer.direction,
            case.memory,
            str(row.transfer.nbytes),
            _ns(row.form.total_ps),
            _verdict(row),
            _ns(row.measured_ps),
            f"{row.gbs:.2f}",
            f" {bottleneck.label}",
            f"{float(bottleneck.bw_gbs):g}",
            f"{100 * row.utilisation:.1f}",
            style="" if row.agrees else "red",
            end_section=last,
        )
    return table


def _trace_table(row: ProbeRow) -> Table:
    transfer = row.transfer
    what = f"{transfer.case.name} {transfer.direction}, {transfer.case.memory}, {_size(transfer.nbytes)}"
    table = _table(
        f"{what}: measured {_ns(row.measured_ps)} ns",
        *(
            "<leg",
            "<into",
            "overhead\n(ns)",
            "wire\n(ns)",
            "link\n(GB/s)",
            "drain\n(ns)",
            "head at\n(ns)",
            "tail at\n(ns)",
        ),
    )
    now_ps = 0
    for leg in row.form.legs:
        for hop in leg.hops:
            now_ps += hop.overhead_ps + hop.wire_ps
            bw_gbs = f"{float(hop.link.bw_gbs):g}" if hop.link else ""
            table.add_row(
                leg.name,
                hop.node,
                _ns(hop.overhead_ps),
                _ns(hop.wire_ps),
                bw_gbs,
                "",
                _ns(now_ps),
                "",
            )
        now_ps += leg.drain_ps
        last = (
            f"last byte, held up by: {leg.bottleneck.label} {float(leg.bottleneck.bw_gbs):g} GB/s"
        )
        table.add_row(
            leg.name, last, "", "", "", _ns(leg.drain_ps), "", _ns(now_ps), end_section=True
        )
    return table


def _table(title: str, *columns: str) -> Table:
    """Columns are right-aligned; a leading `<` makes one left-aligned."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
    )
    for column in columns:
        table.add_column(
            column.removeprefix("<"),
            justify="left" if column.startswith("<") else "right",
            no_wrap=True,
        )
    return table


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
