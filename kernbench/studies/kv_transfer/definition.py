"""The study: what it simulates, keeps and shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.studies import table
from kernbench.studies.kv_transfer.flags import KvFlags
from kernbench.studies.kv_transfer.measurement import measure
from kernbench.studies.kv_transfer.points import KvPoint, KvSize, plan_points, sweep
from kernbench.studies.kv_transfer.rows import KvResults, KvRow
from kernbench.studies.parameter_study import ParameterStudy, TopologyText

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    "<SIPs",
    "<order",
    "tokens",
    "layer\n(us)",
    "after it:\nadded (us)",
    "bound\n(us)",
    "added /\nbound",
    "link\n(%)",
    "beside it:\nadded (us)",
    "bound\n(us)",
    "added /\nbound",
    "<busiest\nport",
    "<elements",
)


class KvTransferStudy(ParameterStudy[KvPoint, KvRow, KvResults]):
    """The KV cache of a prefill to the SIPs of its decode."""

    results_name = "kv_transfer.json"
    noun = "transfers"
    results_type = KvResults
    indent = 20

    def __init__(self, flags: KvFlags) -> None:
        self._flags = flags

    def points(self, topology: TopologyText) -> Sequence[KvPoint]:
        """Raises `UsageError` for flags that are no sizes, or that the machine does not divide."""
        return plan_points(topology, self._flags.sizes)

    def measure(self, point: KvPoint) -> KvRow:
        """One transfer, without and with overlap."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[KvRow]) -> KvResults:
        """With the sizes of the sweep."""
        return KvResults(
            version=self.version,
            sizes=self._flags.sizes,
            topology=topology.source,
            topology_hash=topology.hash,
            rows=tuple(rows),
        )

    def problem(self, results: KvResults) -> str:
        """The rows of the sweep."""
        found = [KvSize(row.prefill, row.decode, row.order, row.tokens) for row in results.rows]
        if found and found == list(sweep(results.sizes)):
            return ""
        return "there must be a row for each of its sizes"

    def figures(self) -> "Mapping[str, Callable[[KvResults], Figure]]":
        """Added times against bounds, and the loads of the links."""
        from kernbench.studies.kv_transfer.figures import FIGURES

        return FIGURES

    def print_table(self, results: KvResults) -> None:
        """A line for each transfer."""
        table.print_table(_COLUMNS, results.rows, _cells, lambda row: (row.pair, row.order))

    def findings(self, results: KvResults) -> Iterator[str]:
        """The links that several pairs of SIPs share."""
        for pair in results.sizes.pairs:
            for order in results.sizes.orders:
                row = results.of(pair, order)[0]
                for link in row.links:
                    if len(link.pairs) > 1:
                        pairs = ", ".join(f"{source} to {target}" for source, target in link.pairs)
                        name = f"{row.pair} {order}"
                        yield f"{name:<{self.indent}}SIP {link.source} to {link.target}: {pairs}"

    def passed(self, results: KvResults) -> str:
        """What has been checked."""
        checked = sum(row.wrong is not None for row in results.rows)
        farthest = max(results.rows, key=lambda row: row.added_beside_ps / row.bound_beside_ps)
        return (
            f"{len(results.rows)} transfers: every element right in {checked}, the others without "
            f"data; none below its bound, the farthest {farthest.label}, "
            f"{farthest.added_beside_ps / farthest.bound_beside_ps:.2f} times it"
        )


def _cells(row: KvRow) -> list[str]:
    return [
        row.pair,
        row.order,
        f"{row.tokens:,}",
        f"{row.layer_ps / 1e6:,.2f}",
        f"{row.added_after_ps / 1e6:,.2f}",
        f"{row.bound_after_ps / 1e6:,.2f}",
        f"{row.added_after_ps / row.bound_after_ps:.3f}",
        f"{100 * row.utilisation:.1f}",
        f"{row.added_beside_ps / 1e6:,.2f}",
        f"{row.bound_beside_ps / 1e6:,.2f}",
        f"{row.added_beside_ps / row.bound_beside_ps:.3f}",
        row.bounds.binds,
        "no data" if row.wrong is None else "right" if not row.wrong else f"{row.wrong:,} wrong",
    ]
