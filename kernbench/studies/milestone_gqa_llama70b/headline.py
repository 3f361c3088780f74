"""The study at headline scale: what it simulates, keeps and shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.benches.attention.layer import LLAMA_70B
from kernbench.studies import table
from kernbench.studies.milestone_gqa_llama70b.headline_measurement import measure
from kernbench.studies.milestone_gqa_llama70b.headline_points import (
    MOST_TOKENS,
    MOST_USERS,
    HeadlinePoint,
    LayerSize,
    plan_points,
    sweep,
)
from kernbench.studies.milestone_gqa_llama70b.headline_rows import (
    HeadlineConfig,
    HeadlineResults,
    HeadlineRow,
)
from kernbench.studies.milestone_gqa_llama70b.panels import AttentionPanel
from kernbench.studies.number_list import rising_numbers
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    "<panel",
    "SIPs",
    "users",
    "tokens",
    "time\n(us)",
    "bound\n(us)",
    "<bound\nby",
    "bound /\ntime (%)",
    "GEMM\n(%)",
    "vector\n(%)",
    "memory\n(%)",
    "<error\nto float64",
)


class HeadlineStudy(ParameterStudy[HeadlinePoint, HeadlineRow, HeadlineResults]):
    """One attention layer of llama-70B; the flags are lists of numbers, separated by commas."""

    results_name = "gqa/sweep.json"
    noun = "layers"
    results_type = HeadlineResults

    def __init__(self, *, prefill: str, decode: str, sips: str, batch: int) -> None:
        self._prefill, self._decode, self._sips = prefill, decode, sips
        self._batch = batch

    @property
    def config(self) -> HeadlineConfig:
        """The sizes; raises `UsageError` for flags that are no such lists."""
        if not 2 <= self._batch <= MOST_USERS:
            raise UsageError(f"--batch {self._batch}: several users are 2 to {MOST_USERS}")
        sips = rising_numbers("--sips-list", self._sips, 1, LLAMA_70B.kv_heads)
        for count in sips:
            if LLAMA_70B.kv_heads % count:
                raise UsageError(
                    f"--sips-list {count}: the {LLAMA_70B.kv_heads} KV heads do not divide by it"
                )
        return HeadlineConfig(
            h_q=LLAMA_70B.heads,
            h_kv=LLAMA_70B.kv_heads,
            d_head=LLAMA_70B.depth,
            batch=self._batch,
            S_prefill=rising_numbers("--prefill", self._prefill, 1, MOST_TOKENS),
            S_kv_decode=rising_numbers("--decode", self._decode, 1, MOST_TOKENS),
            sips=sips,
        )

    def points(self, topology: TopologyText) -> Sequence[HeadlinePoint]:
        """Raises `UsageError` for sizes that the machine does not divide."""
        return plan_points(topology, read_text(default_file("ccl.yaml")), self.config)

    def measure(self, point: HeadlinePoint) -> HeadlineRow:
        """One layer."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[HeadlineRow]) -> HeadlineResults:
        """With the sizes of the sweep."""
        return HeadlineResults(
            version=self.version,
            validation_scale=False,
            panels=tuple(AttentionPanel),
            config=self.config,
            topology=topology.source,
            topology_hash=topology.hash,
            rows=tuple(rows),
        )

    def problem(self, results: HeadlineResults) -> str:
        """The rows of the sweep, and a row of every panel for the figures."""
        found = [LayerSize(row.panel, row.batch, row.tokens, row.n_ranks) for row in results.rows]
        if found == list(sweep(results.config)) and all(map(results.of, AttentionPanel)):
            return ""
        return "there must be a row for each size of its config, and one of every panel"

    def figures(self) -> "Mapping[str, Callable[[HeadlineResults], Figure]]":
        """Times against bounds, their parts, and the utilisation of the engines."""
        from kernbench.studies.milestone_gqa_llama70b.headline_figures import FIGURES

        return FIGURES

    def print_table(self, results: HeadlineResults) -> None:
        """A line for each layer."""
        table.print_table(_COLUMNS, results.rows, _cells, lambda row: (row.panel, row.tokens))

    def passed(self, results: HeadlineResults) -> str:
        """With the layers nearest to their bounds."""
        checked = sum(row.error is not None for row in results.rows)
        heads = sum(row.head_error is not None for row in results.rows)
        nearest = [
            max((row for row in results.rows if row.panel.is_decode == decodes), key=_share)
            for decodes in (False, True)
        ]
        names = " and ".join(f"{row.label} ({row.share:.0%})" for row in nearest)
        return (
            f"{len(results.rows)} layers: {checked} right against float64, of {heads} one head, "
            f"also by halves, the others without data; none below its bound, the nearest {names}"
        )


def _share(row: HeadlineRow) -> float:
    return row.share


def _cells(row: HeadlineRow) -> list[str]:
    bounds = row.bounds
    shares = (bounds.gemm_ps, bounds.vector_ps, bounds.memory_ps)
    return [
        row.panel,
        str(row.n_ranks),
        str(row.batch),
        f"{row.tokens:,}",
        f"{row.kernel_ps / 1e6:,.2f}",
        f"{bounds.bound_ps / 1e6:,.2f}",
        bounds.binds,
        f"{100 * row.share:.1f}",
        *(f"{100 * each / row.kernel_ps:.1f}" for each in shares),
        _checked(row),
    ]


def _checked(row: HeadlineRow) -> str:
    if row.error is not None:
        return f"{row.error:.1e}"
    if row.head_error is None or row.halves_error is None:
        return "no data"
    return f"{row.head_error:.1e} (one head; its halves {row.halves_error:.1e})"
