"""The rows of the study as a table on the terminal."""

from kernbench.studies import table
from kernbench.studies.milestone_1h_gemm.rows import GemmResults, GemmRow
from kernbench.studies.milestone_1h_gemm.shapes import Staging
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


def print_table(results: GemmResults) -> None:
    """A line for each product, grouped by shape. `stalled` is the longest stall of the engine."""
    table.print_table(_COLUMNS, results.rows, _cells, lambda row: row.shape)


def _cells(row: GemmRow) -> list[str]:
    load = ns(row.load_ps) if row.staging is not Staging.REF_REF else ""
    shares = (row.utilisation, row.product_utilisation, row.padding_utilisation)
    # Not red alone: colours are missing in a file or a pipe.
    flags = ["under tile"] * row.under_tile + ["FAULT"] * bool(row.faults)
    return [
        str(row.shape),
        row.staging,
        f"{row.steps:,}",
        ns(row.kernel_ps),
        load,
        ns(row.theory.bound_ps),
        row.theory.binds,
        f"{row.ratio:.3f}",
        *(f"{100 * share:.1f}" for share in shares),
        _longest_stall(row),
        ", ".join(flags),
    ]


def _longest_stall(row: GemmRow) -> str:
    stalls = {"dma": row.stalls.dma_ps, "fetch": row.stalls.fetch_ps, "store": row.stalls.store_ps}
    reason = max(stalls, key=stalls.__getitem__)
    return f"{100 * stalls[reason] / row.kernel_ps:4.1f} {reason}" if stalls[reason] else ""
