"""The skeleton of a parameter study: simulate points, keep their rows in a file, show them.

    points -- measure, in worker processes --> rows --> JSON file --> table, figures, verdict
                                                            |
                   MILESTONE_FAST=1 starts here ------------+

The JSON file holds everything that is printed and drawn, so that a figure can be drawn again
without simulating. A row depends on its point alone: the file is the same for every number of
worker processes.
"""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from kernbench.studies import csv_file, results_file
from kernbench.studies.study_results import RowT, StudyResults, StudyRow
from runtime.core.bench_registry import StudyOptions
from runtime.core.config_file import default_file, read_text
from runtime.core.cores import usable_cores
from runtime.core.errors import UsageError
from runtime.core.section import config_hash
from runtime.core.simtime import format_ps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from runtime.model.topology import Topology

DEFAULT_OUT = Path("benches/1H_milestone_output")
"""Output directory, below the current directory."""
FAST = "MILESTONE_FAST"
"""Environment variable: `1` draws and prints what is in the results file, without simulating."""


class StudyPoint(Protocol):
    """One simulation of a study: hashable, and named by `str` in progress and errors."""

    @property
    def cost(self) -> int:
        """Estimated work of the simulation, in a unit common to the points of a study."""
        ...


@dataclass(frozen=True)
class TopologyText:
    """The topology file of a study: its name, and its content as text."""

    source: str
    text: str

    @cached_property
    def parsed(self) -> "Topology":
        """The configuration; raises `ConfigError` for an invalid file."""
        from runtime.model.topology import parse_topology

        return parse_topology(self.text, self.source)

    @property
    def hash(self) -> str:
        """Hash of the configuration; raises `ConfigError` for an invalid file."""
        return config_hash(self.parsed)


PointT = TypeVar("PointT", bound=StudyPoint)
ResultsT = TypeVar("ResultsT", bound=StudyResults[Any])


class ParameterStudy(ABC, Generic[PointT, RowT, ResultsT]):
    """One study. A subclass defines its points, how one is measured, and how the rows are shown.

    Instances travel to worker processes, so their attributes must be picklable.
    """

    results_name: ClassVar[str]
    """Name of the JSON file."""
    csv_name: ClassVar[str] = ""
    """Name of the CSV file, if there is one."""
    version: ClassVar[int] = 1
    """Version of the JSON file's format; a file of another version is refused."""
    results_type: type[ResultsT]
    """The struct that is written to the JSON file."""
    noun: ClassVar[str]
    """What the points are, in the plural, for the progress bar."""
    indent: ClassVar[int] = 16
    """Column at which the names of the files are printed."""

    # What is simulated.

    @abstractmethod
    def points(self, topology: TopologyText) -> Sequence[PointT]:
        """All points, in the order of the rows.

        Raises `ConfigError` for an invalid file and `UsageError` for invalid options.
        """

    @abstractmethod
    def measure(self, point: PointT) -> RowT:
        """Simulate one point, in a worker process."""

    # What is kept.

    def results(self, topology: TopologyText, rows: Sequence[RowT]) -> ResultsT:
        """The content of the JSON file; a study whose file has more fields overrides this."""
        return self.results_type(
            version=self.version,
            topology=topology.source,
            topology_hash=topology.hash,
            rows=tuple(rows),
        )

    def problem(self, results: ResultsT) -> str:
        """What is missing in a file that was read; empty if it is complete."""
        del results
        return ""

    def csv_columns(self) -> Mapping[str, Callable[[RowT], object]]:
        """Columns of the CSV file: heading, and the cell of a row."""
        return {}

    # What is shown.

    @abstractmethod
    def figures(self) -> Mapping[str, "Callable[[ResultsT], Figure]"]:
        """The figures by the name of their PNG files. This method imports matplotlib."""

    @abstractmethod
    def print_table(self, results: ResultsT) -> None:
        """Print the rows."""

    def findings(self, results: ResultsT) -> Iterable[str]:
        """Lines between the table and the verdict."""
        del results
        return ()

    @abstractmethod
    def passed(self, results: ResultsT) -> str:
        """The verdict if no row has a fault."""

    # The steps that are the same for all studies.

    def run(self, options: StudyOptions) -> bool:
        """Simulate or read the results, draw and print them; returns whether no row has a fault.

        Raises `UsageError` for options that do not fit together and for files that cannot be
        accessed.
        """
        # Before the simulations: they can take minutes, and would be lost without matplotlib.
        with requires_matplotlib():
            self.figures()
        file = (options.out or DEFAULT_OUT) / self.results_name
        if _is_fast(options, file.name):
            results = self.read(file)
        else:
            results = self.simulate(options, file)
        files = [file, *self._write_csv(results, file.parent), *self.draw(results, file.parent)]
        self.print_table(results)
        lines = (*self.findings(results), *self.verdict(results), *_listed(files, self.indent))
        print(*lines, sep="\n")
        return not any(row.faults for row in results.rows)

    def simulate(self, options: StudyOptions, file: Path) -> ResultsT:
        """Simulate all points and write the results to `file`; creates its directory."""
        path = options.topology or default_file("topology.yaml")
        topology = TopologyText(str(options.topology or path.name), read_text(path))
        # An invalid file is refused here: points take numbers from its text.
        _ = topology.hash
        points = self.points(topology)
        _make(file.parent)
        rows = self.measured(points, options.procs or usable_cores(), options.timeout_s)
        results = self.results(topology, rows)
        results_file.write(file, results)
        return results

    def measured(self, points: Sequence[PointT], procs: int, timeout_s: float) -> tuple[RowT, ...]:
        """The row of each point, measured in `procs` processes, with progress on stderr.

        Raises what `pool.completed` raises.
        """
        # Imported here: re-rendering needs neither worker processes nor the simulator.
        from kernbench.studies.pool import completed
        from kernbench.studies.progress import shown

        # Longest first: a long point started last would run alone while the other workers are idle.
        ordered = sorted(points, key=lambda point: point.cost, reverse=True)
        with closing(completed(self.measure, ordered, procs, timeout_s)) as pairs:
            rows = dict(shown(pairs, len(ordered), sys.stderr, self.noun, _time))
        return tuple(rows[point] for point in points)

    def read(self, file: Path) -> ResultsT:
        """The results in a file; raises `UsageError` for a file that is invalid or incomplete."""
        results = results_file.read(file, self.results_type, self.version)
        problem = self.problem(results)
        if problem:
            raise UsageError(f"{file}: {problem}")
        return results

    def draw(self, results: ResultsT, directory: Path) -> list[Path]:
        """Draw all figures; returns their files."""
        with requires_matplotlib():
            from kernbench.studies.plots import saved

            figures = self.figures()
        return [saved(figure(results), directory / name) for name, figure in figures.items()]

    def verdict(self, results: ResultsT) -> list[str]:
        """One line if no row has a fault, else the number of faults and a line for each."""
        faults = [f"{row.label}: {fault}" for row in results.rows for fault in row.faults]
        return [f"{len(faults)} FAULTS", *faults] if faults else [self.passed(results)]

    def _write_csv(self, results: ResultsT, directory: Path) -> Iterator[Path]:
        if self.csv_name:
            columns = self.csv_columns()
            lines = ([cell(row) for cell in columns.values()] for row in results.rows)
            yield csv_file.write(directory / self.csv_name, columns, lines)


@contextmanager
def requires_matplotlib() -> Generator[None]:
    """Turn a missing matplotlib into a `UsageError` that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise UsageError(
            "the figures need matplotlib, the extra `plots`: pip install 'kernbench[plots]'"
        ) from error


def _is_fast(options: StudyOptions, file_name: str) -> bool:
    """Whether the results are read from the file.

    Options of the simulation are refused then: the figures would not show what they select.
    """
    value = os.environ.get(FAST, "")
    if value not in ("", "0", "1"):
        raise UsageError(
            f"{FAST} is {value!r}: "
            "1 draws the figures again without simulating, 0 or nothing simulates"
        )
    if value != "1":
        return False
    refused = options.changed if options.topology is None else ("--topology", *options.changed)
    if refused:
        raise UsageError(
            f"{refused[0]} with {FAST}=1: "
            f"nothing is simulated, the figures show what is in {file_name}"
        )
    return True


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error


def _time(row: StudyRow) -> str:
    return format_ps(row.time_ps)


def _listed(files: Sequence[Path], column: int) -> Iterator[str]:
    for number, file in enumerate(files):
        yield f"{'' if number else 'files':<{column}}{file}"
