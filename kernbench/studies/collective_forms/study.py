"""The study of collectives against closed forms: what it measures, keeps and shows.

A point is a call by collective, PEs of a rank, number of ranks and size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from kernbench.benches.collective_perf.cubes import nearest_cubes
from kernbench.benches.flags import check_range
from kernbench.oracle.theory.collectives.collective_forms import FORMS, CollectiveTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.catalogue import FormFlags, rising_numbers, sizes_by_factor
from kernbench.studies.ccl_algorithms.measurement import run_call
from kernbench.studies.ccl_algorithms.rows import AlgorithmPoint
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.study_results import StudyResults, wrong_count
from kernbench.studies.table import RowTable
from runtime.core.config.config_file import default_file, read_text
from runtime.model.topology import parse_topology

SMALLEST_BYTES, SMALLEST_ON_ALL_PES, STEP = 1 << 16, 1 << 18, 4
CHECKED_BYTES = 1 << 18
"""Size up to which a run has data, and every element is checked."""
ON_ALL_PES = ("all_reduce", "all_to_all_single")
"""The collectives that are measured on all PEs, too."""
ITEM_BYTES = 2
"""An element is float16."""
IN_PARTS = frozenset({"reduce_scatter_tensor", "all_gather_into_tensor", "all_to_all_single"})
"""The collectives whose larger tensor has a part for every rank."""
MOST_RANKS, MOST_BYTES = 64, 1 << 30


@dataclass(frozen=True)
class FormPoint:
    """One call on `nbytes` in the larger tensor of a rank, on one PE or on all `pes` of a SIP.

    The tensor is rounded down to equally many elements of every part on every PE.
    """

    topology: str
    ccl: str
    collective: str
    pes: int
    ranks: int
    nbytes: int

    @property
    def call(self) -> AlgorithmPoint:
        """The same call as a point of `ccl-algorithms`, whose size is that of the input."""
        is_gather = self.collective == "all_gather_into_tensor"
        unit = ITEM_BYTES * self.pes * (self.ranks if self.collective in IN_PARTS else 1)
        nbytes = self.nbytes // unit * unit
        return AlgorithmPoint(
            topology=self.topology,
            ccl=self.ccl,
            collective=self.collective,
            algorithm="pairwise" if self.collective == "all_to_all_single" else "ring",
            ranks=self.ranks,
            nbytes=nbytes // self.ranks if is_gather else nbytes,
        )

    @property
    def is_checked(self) -> bool:
        """Whether the run has data."""
        return self.nbytes <= CHECKED_BYTES

    @property
    def cost(self) -> int:
        """Events grow with the bytes on the links, and with the chips that are built."""
        return self.ranks * (self.nbytes + 50_000) + 8 * (self.ranks * self.pes) ** 2

    def __str__(self) -> str:
        return f"{self.collective} {self.ranks} ranks {self.pes} PEs {self.nbytes} B"


def plan_points(topology: str, ccl: str, flags: FormFlags) -> tuple[FormPoint, ...]:
    """All points, on rings of the SIPs of a topology file; `UsageError` for wrong flags."""
    check_range(SMALLEST_BYTES, MOST_BYTES, max_bytes=flags.max_bytes)
    if flags.all_pes_bytes:
        check_range(SMALLEST_ON_ALL_PES, MOST_BYTES, all_pes_bytes=flags.all_pes_bytes)
    counts = rising_numbers("--ranks", flags.ranks, 2, MOST_RANKS)
    file = TopologyFile.of(topology)
    # Rendering a file takes milliseconds: once for each ring, not for each point.
    rings = {count: file.on_a_ring(count).text for count in counts}
    return tuple(
        FormPoint(
            topology=text,
            ccl=ccl,
            collective=collective,
            pes=pes,
            ranks=count,
            nbytes=nbytes,
        )
        for pes, collectives, least, most in (
            (1, FORMS, SMALLEST_BYTES, flags.max_bytes),
            (file.cubes * file.pes_per_cube, ON_ALL_PES, SMALLEST_ON_ALL_PES, flags.all_pes_bytes),
        )
        for collective in collectives
        for count, text in rings.items()
        for nbytes in sizes_by_factor(least, most, STEP)
    )


LARGE_BYTES = 1 << 20
LIMIT = 1.15
"""The most times its form that a collective on `LARGE_BYTES` or more may take."""


class FormRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a collective on about `nbytes` in the larger tensor of a rank, on `pes` PEs.

    `time_ps` is the time of the kernels, `form_ps` the closed form, `skew_ps` the time between the
    first and the last start of a kernel, `wrong` the number of wrong elements over all ranks, None
    in a run without data.
    """

    collective: str
    pes: int
    ranks: int
    nbytes: int
    time_ps: int
    form_ps: float
    skew_ps: int
    wrong: int | None

    @property
    def ratio(self) -> float:
        """The time over the form."""
        return self.time_ps / self.form_ps

    @property
    def label(self) -> str:
        """Collective, ranks, PEs and size."""
        return f"{self.collective} {self.ranks} ranks {self.pes} PEs {self.nbytes} B"

    @property
    def faults(self) -> list[str]:
        """A wrong result, or a large collective that takes more than `LIMIT` of its form."""
        faults = [*wrong_count(self.wrong)]
        if self.nbytes >= LARGE_BYTES and self.ratio > LIMIT:
            faults.append(f"{self.ratio:.2f} times the closed form, more than {LIMIT}")
        return faults


class FormResults(StudyResults[FormRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the topology file they were measured on."""


class FormStudy(ParameterStudy[FormPoint, FormRow, FormResults]):
    """Every collective by number of ranks and size."""

    results_name = "collective_forms.json"
    noun = "collectives"
    results_type = FormResults
    figures_module = "kernbench.studies.collective_forms.figures"
    table = RowTable[FormRow](
        (
            ("<collective", lambda row: row.collective),
            ("PEs", lambda row: str(row.pes)),
            ("ranks", lambda row: str(row.ranks)),
            ("size\n(KiB)", lambda row: f"{row.nbytes >> 10:,}"),
            ("time\n(us)", lambda row: f"{row.time_ps / 1e6:.2f}"),
            ("form\n(us)", lambda row: f"{row.form_ps / 1e6:.2f}"),
            ("ratio", lambda row: f"{row.ratio:.3f}"),
        ),
        group=lambda row: (row.collective, row.pes == 1, row.ranks),
    )
    flags: FormFlags

    def points(self, topology: TopologyText) -> Sequence[FormPoint]:
        """The sweep, with the `ccl.yaml` of the current directory or the shipped one."""
        return plan_points(topology.text, read_text(default_file("ccl.yaml")), self.flags)

    def measure(self, point: FormPoint) -> FormRow:
        """Simulate one call."""
        call, topology = point.call, parse_topology(point.topology, "topology.yaml")
        cubes = nearest_cubes(topology)[:1] if point.pes == 1 else tuple(range(topology.cubes))
        pes = point.pes // len(cubes)
        run = run_call(call, cubes, pes, has_data=point.is_checked)
        places = tuple((cube, pe) for cube in cubes for pe in range(pes))
        theory = CollectiveTimes(TopologyFile.of(point.topology), places)
        return FormRow(
            collective=point.collective,
            pes=point.pes,
            ranks=point.ranks,
            nbytes=point.nbytes,
            time_ps=run.time_ps,
            form_ps=theory.form_ps(point.collective, point.ranks, call.case.size_bytes),
            skew_ps=run.skew_ps,
            wrong=run.wrong if point.is_checked else None,
        )

    def problem(self, results: FormResults) -> str:
        """The figure needs a row, and the findings need the form of its collective."""
        unknown = {row.collective for row in results.rows} - FORMS.keys()
        if unknown:
            return f"no form of {', '.join(sorted(unknown))}"
        return "" if results.rows else "there are no rows"

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
        """Summary of the checks that passed."""
        checked = sum(row.wrong is not None for row in results.rows)
        return (
            f"{len(results.rows)} collectives: the {checked} with data right bit by bit, "
            f"the others without data"
        )


def large_ratios(rows: Sequence[FormRow]) -> Mapping[tuple[str, str], list[float]]:
    """Times over forms of 1 MiB and more, by collective and by one PE or all PEs."""
    ratios = dict[tuple[str, str], list[float]]()
    for row in rows:
        if row.nbytes >= LARGE_BYTES:
            pes = "one PE" if row.pes == 1 else "all PEs"
            ratios.setdefault((row.collective, pes), []).append(row.ratio)
    return ratios
