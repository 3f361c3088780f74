"""The rows of the sweep as a table on the terminal."""

from collections.abc import Sequence

from kernbench.studies import table
from kernbench.studies.milestone_1h_gemm.rows import Row, Sweep
from kernbench.studies.milestone_1h_gemm.shapes import Shape, Staging
from kernbench.studies.table import ns

_COLUMNS = (
    "<shape\nM x K x N",
    "<staging\nA_B",
    "steps",
    "time\n(ns)",
    "loading\n(ns)",
    "bound\n(ns)",
    "<bound\nby",
    "time /\nbound",
    "of peak\n(%)",
    "product\n(%)",
    "limit\n(%)",
    "<stalled\n(%) by",
    "<flags",
)


def print_table(sweep: Sweep) -> None:
    """A line for each point, the shapes apart. What the GEMM engine waits for is the longest of its stalls."""
    table.print_table(_COLUMNS, sweep.rows, _cells, _shape)


def verdict(rows: Sequence[Row]) -> list[str]:
    """One line that says that all is well, or a line for each fault."""
    nearest = min(rows, key=lambda row: row.ratio)
    best = f"{nearest.shape} {nearest.staging}, {nearest.ratio - 1:.1%} above"
    well = f"{len(rows)} products: right against float64, none below its bound, the nearest {best}"
    return table.verdict(rows, lambda row: f"{row.shape} {row.staging}", well)


def _shape(row: Row) -> Shape:
    return row.shape


def _cells(row: Row) -> list[str]:
    theory = row.theory
    load = ns(row.load_ps) if row.staging is not Staging.REF_REF else ""
    shares = (
        f"{100 * share:.1f}"
        for share in (row.utilisation, row.product_utilisation, row.padding_utilisation)
    )
    flags = ["under tile"] * row.under_tile + ["FAULT"] * bool(row.faults)
    waits = {"dma": row.stalls.dma_ps, "fetch": row.stalls.fetch_ps, "store": row.stalls.store_ps}
    reason = max(waits, key=waits.__getitem__)
    wait = f"{100 * waits[reason] / row.kernel_ps:4.1f} {reason}" if waits[reason] else ""
    return [
        str(row.shape),
        row.staging,
        f"{row.steps:,}",
        ns(row.kernel_ps),
        load,
        ns(theory.bound_ps),
        theory.binds,
        f"{row.ratio:.3f}",
        *shares,
        wait,
        ", ".join(flags),
    ]
