"""The study at validation scale: what it simulates, keeps and shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies import table
from kernbench.studies.milestone_gqa_llama70b.panels import AttentionPanel
from kernbench.studies.milestone_gqa_llama70b.validation_measurement import (
    ValidationPoint,
    measure,
)
from kernbench.studies.milestone_gqa_llama70b.validation_rows import (
    ValidationConfig,
    ValidationResults,
    ValidationRow,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.table import ns
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    "<panel",
    "ranks",
    "products",
    "sends",
    "receives",
    "reads",
    "writes",
    "time\n(ns)",
    "error\nf16",
    "error\nf32",
    "error\nmasked",
    "<shifted\nscores",
)


class ValidationStudy(ParameterStudy[ValidationPoint, ValidationRow, ValidationResults]):
    """All four panels with small tensors, on rings of PEs of one SIP."""

    results_name = "gqa/sweep.json"
    noun = "panels"
    results_type = ValidationResults

    def points(self, topology: TopologyText) -> Sequence[ValidationPoint]:
        """Raises `UsageError` for a SIP without a ring of 8 PEs or without 2 x 2 cubes."""
        config = ValidationConfig()
        _check_rings(topology, config)
        one_sip = TopologyFile.of(topology.text).on_a_ring(1).text
        queues = read_text(default_file("ccl.yaml"))
        return [
            ValidationPoint(topology=one_sip, ccl=queues, panel=panel, config=config)
            for panel in AttentionPanel
        ]

    def measure(self, point: ValidationPoint) -> ValidationRow:
        """One panel."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[ValidationRow]) -> ValidationResults:
        """With the sizes of all panels."""
        return ValidationResults(
            version=self.version,
            validation_scale=True,
            panels=tuple(AttentionPanel),
            config=ValidationConfig(),
            topology=topology.source,
            topology_hash=topology.hash,
            rows=tuple(rows),
        )

    def problem(self, results: ValidationResults) -> str:
        """A row for every panel."""
        if [row.panel for row in results.rows] == list(AttentionPanel):
            return ""
        return f"there must be one row for each of {', '.join(AttentionPanel)}"

    def figures(self) -> "Mapping[str, Callable[[ValidationResults], Figure]]":
        """None: times of tensors of a few KiB are latencies."""
        return {}

    def print_table(self, results: ValidationResults) -> None:
        """A line for each panel."""
        table.print_table(_COLUMNS, results.rows, _cells, lambda row: row.panel.is_single_user)

    def passed(self, results: ValidationResults) -> str:
        """What has been checked."""
        return (
            f"{len(results.rows)} panels: right against float64 in float16 and float32, with "
            "masked ranks and with shifted scores; all counts as expected"
        )


def _check_rings(topology: TopologyText, config: ValidationConfig) -> None:
    found = topology.parsed
    mesh, ranks = found.sip.cube_mesh, config.n_ranks_single_user
    if found.pes_per_cube != ranks or mesh.w < 2 or mesh.h < 2:
        raise UsageError(
            f"--topology {topology.source}: the validation scale needs {ranks} PEs a cube and at "
            f"least 2 x 2 cubes; there are {found.pes_per_cube} PEs and {mesh.w} x {mesh.h} cubes"
        )


def _cells(row: ValidationRow) -> list[str]:
    counts = row.op_log_summary
    return [
        row.panel,
        str(row.n_ranks),
        str(counts.gemm_count),
        str(counts.ipcq_send_count),
        str(counts.ipcq_recv_count),
        str(counts.dma_read_count),
        str(counts.dma_write_count),
        ns(row.kernel_ps),
        f"{row.f16_error:.1e}",
        f"{row.f32_error:.1e}",
        "" if row.masked_error is None else f"{row.masked_error:.1e}",
        "equal" if row.shifted_is_equal else "DIFFERENT",
    ]
