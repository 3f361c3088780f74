"""The study of collectives against closed forms: what it simulates, keeps and shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.oracle.theory.collectives.collective_forms import FORMS
from kernbench.studies import table
from kernbench.studies.collective_forms.measurement import measure
from kernbench.studies.collective_forms.points import FormPoint, plan_points
from kernbench.studies.collective_forms.rows import FormResults, FormRow
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from runtime.core.config.config_file import default_file, read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE_BYTES = 1 << 20
_COLUMNS = ("<collective", "PEs", "ranks", "size\n(KiB)", "time\n(us)", "form\n(us)", "ratio")


class FormStudy(ParameterStudy[FormPoint, FormRow, FormResults]):
    """Every collective by number of ranks and size."""

    results_name = "collective_forms.json"
    noun = "collectives"
    results_type = FormResults

    def __init__(self, ranks: str, max_bytes: int, all_pes_bytes: int) -> None:
        self._flags = ranks, max_bytes, all_pes_bytes

    def points(self, topology: TopologyText) -> Sequence[FormPoint]:
        """With the `ccl.yaml` of the current directory, or the shipped one."""
        return plan_points(topology.text, read_text(default_file("ccl.yaml")), *self._flags)

    def measure(self, point: FormPoint) -> FormRow:
        """One call."""
        return measure(point)

    def problem(self, results: FormResults) -> str:
        """The figure needs a row, and the findings need the form of its collective."""
        unknown = {row.collective for row in results.rows} - FORMS.keys()
        if unknown:
            return f"no form of {', '.join(sorted(unknown))}"
        return "" if results.rows else "there are no rows"

    def figures(self) -> Mapping[str, "Callable[[FormResults], Figure]"]:
        """Ratio against size."""
        from kernbench.studies.collective_forms.figures import FIGURES

        return FIGURES

    def print_table(self, results: FormResults) -> None:
        """A line for each call."""
        table.print_table(
            _COLUMNS, results.rows, _cells, lambda row: (row.collective, row.pes == 1, row.ranks)
        )

    def findings(self, results: FormResults) -> Iterator[str]:
        """The forms, and the ratios of large tensors by collective."""
        for collective, form in FORMS.items():
            yield f"{collective:<24}{form.formula}"
        yield ""
        for (collective, pes), ratios in large_ratios(results.rows).items():
            yield (
                f"{collective:<24}{pes}, 1 MiB and more: "
                f"{min(ratios):.3f} to {max(ratios):.3f} times the form"
            )

    def passed(self, results: FormResults) -> str:
        """What has been checked."""
        checked = sum(row.wrong is not None for row in results.rows)
        return (
            f"{len(results.rows)} collectives: the {checked} with data right bit by bit, "
            f"the others without data"
        )


def large_ratios(rows: Sequence[FormRow]) -> Mapping[tuple[str, str], list[float]]:
    """Times over forms of 1 MiB and more, by collective and by one PE or all PEs."""
    found = dict[tuple[str, str], list[float]]()
    for row in rows:
        if row.nbytes >= LARGE_BYTES:
            pes = "one PE" if row.pes == 1 else "all PEs"
            found.setdefault((row.collective, pes), []).append(row.ratio)
    return found


def _cells(row: FormRow) -> list[str]:
    return [
        row.collective,
        str(row.pes),
        str(row.ranks),
        f"{row.nbytes >> 10:,}",
        f"{row.time_ps / 1e6:.2f}",
        f"{row.form_ps / 1e6:.2f}",
        f"{row.ratio:.3f}",
    ]
