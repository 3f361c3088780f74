"""The skeleton of a parameter study: simulate points, keep their rows in a file, show them.

    points -- measure, on an executor --> rows --> JSON file --> table, figures, verdict
                                                       |
              MILESTONE_FAST=1 starts here ------------+

Each row is kept in a file beside it as it comes (`kernbench.points.rows_file`). The JSON file holds
everything that is printed and drawn, so that a figure can be drawn again without simulating. A row
depends on its point alone: the files are the same for every executor, and also if the study was
interrupted and has gone on.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args

from kernbench.points.task import Limits, Point, PointFault
from kernbench.studies import results_file
from kernbench.studies.study_results import RowT, StudyResults, StudyRow
from kernbench.studies.table import RowTable
from runtime.core.bench_registry import StudyOptions
from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.section import config_hash
from runtime.core.errors import UsageError
from runtime.core.simtime import format_ps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernbench.points.driver import PointMeasurement, PointOptions
    from runtime.model.topology import Topology

DEFAULT_OUT = Path("benches/1H_milestone_output")
"""Output directory, below the current directory."""
FAST = "MILESTONE_FAST"
"""Environment variable: `1` draws and prints what is in the results file, without simulating."""


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


PointT = TypeVar("PointT", bound=Point)
ResultsT = TypeVar("ResultsT", bound=StudyResults[Any])


class ParameterStudy(ABC, Generic[PointT, RowT, ResultsT]):
    """A study. A subclass declares its points, how one is measured, and how the rows are shown.

    Instances travel to worker processes, so their `flags` must be picklable.
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
    """The noun for points in the plural, for the progress bar."""
    table: RowTable[RowT]
    """The columns of the table, unless `print_table` prints another one."""
    figures_module: ClassVar[str] = ""
    """The module with `FIGURES`, which is imported to draw: it loads matplotlib."""
    indent: ClassVar[int] = 16
    """Column at which the names of the files are printed."""

    def __init__(self, flags: Any = None) -> None:
        self.flags = flags

    @classmethod
    def of(cls, flags: Any, options: StudyOptions) -> "ParameterStudy[Any, Any, Any]":
        """The study that a command with these flags and options runs.

        A study whose flags exclude one another overrides this, and raises `UsageError`.
        """
        del options
        return cls(flags)

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
        """The content of the JSON file."""
        return self.results_type(
            version=self.version,
            topology=topology.source,
            topology_hash=topology.hash,
            rows=tuple(rows),
            **self.kept(topology),
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:
        """Further fields of the JSON file."""
        del topology
        return {}

    def problem(self, results: ResultsT) -> str:
        """The missing part of a file that was read; empty if it is complete."""
        del results
        return ""

    def csv_columns(self) -> Mapping[str, Callable[[RowT], object]]:
        """Columns of the CSV file: heading, and the cell of a row."""
        return {}

    # What is shown.

    def figures(self) -> Mapping[str, "Callable[[ResultsT], Figure]"]:
        """The figures by the name of their PNG files. This method imports matplotlib."""
        return import_module(self.figures_module).FIGURES if self.figures_module else {}

    def print_table(self, results: ResultsT) -> None:
        """Print the rows."""
        self.table.print(results.rows)

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
            results, lost = self.simulate(options, file)
            if lost:
                self._print_lost(results, lost, file)
                return False
        files = [file, *self._write_csv(results, file.parent), *self.draw(results, file.parent)]
        self.print_table(results)
        lines = (*self.findings(results), *self.verdict(results), *_listed(files, self.indent))
        print(*lines, sep="\n")
        return not any(row.faults for row in results.rows)

    def simulate(
        self, options: StudyOptions, file: Path
    ) -> tuple[ResultsT, tuple[PointFault, ...]]:
        """Simulate all points and write the results to `file`; creates its directory.

        Returns the results, and the points that have none. Raises what `measured_points` raises.
        """
        # Imported here: re-rendering needs neither workers nor the simulator.
        from kernbench.points.driver import measured_points
        from kernbench.points.rows_file import SUFFIX, RowsFile

        path = options.topology or default_file("topology.yaml")
        topology = TopologyText(str(options.topology or path.name), read_text(path))
        # An invalid file is refused here: points take numbers from its text.
        configuration = topology.hash
        points = self.points(topology)
        _make(file.parent)
        measurement = self.measurement()
        with RowsFile(
            file.with_suffix(SUFFIX),
            measurement.row_type,
            points,
            configuration,
            resume=options.resume,
        ) as rows_file:
            outcomes = measured_points(measurement, points, point_options(options), rows_file)
            ordered = [outcomes[point] for point in points]
            rows = [each for each in ordered if not isinstance(each, PointFault)]
            lost = tuple(each for each in ordered if isinstance(each, PointFault))
            results = self.results(topology, rows)
            results_file.write(file, results, lost)
        return results, lost

    def measurement(self) -> "PointMeasurement[PointT, RowT]":
        """The measurement of the points, for the driver."""
        from kernbench.points.driver import PointMeasurement

        return PointMeasurement(self.measure, self._row_type(), self.noun, _time)

    @classmethod
    def _row_type(cls) -> type[RowT]:
        """The type in `StudyResults[...]` of the class of the results."""
        for base in getattr(cls.results_type, "__orig_bases__", ()):
            for argument in get_args(base):
                return argument
        raise TypeError(f"{cls.results_type.__name__} is no StudyResults[...] of a type of rows")

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

    def _print_lost(self, results: ResultsT, lost: Sequence[PointFault], file: Path) -> None:
        """Print faults and files if rows are missing: tables and figures compare all rows."""
        count = len(results.rows) + len(lost)
        faults = [f"{row.label}: {fault}" for row in results.rows for fault in row.faults]
        print(
            f"{len(lost) + len(faults)} FAULTS",
            *(f"{each.point}: {each.reason}" for each in lost),
            *faults,
            f"{len(results.rows)} of {count} {self.noun} have a row: no table and no figures; "
            "--resume measures the others",
            *_listed([file, *self._write_csv(results, file.parent)], self.indent),
            sep="\n",
        )

    def _write_csv(self, results: ResultsT, directory: Path) -> Iterator[Path]:
        if self.csv_name:
            columns = self.csv_columns()
            lines = ([cell(row) for cell in columns.values()] for row in results.rows)
            yield results_file.write_csv(directory / self.csv_name, columns, lines)


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


def point_options(options: StudyOptions) -> "PointOptions":
    """Executor and limits of the measurement of the points of a study."""
    from kernbench.points.driver import PointOptions

    return PointOptions(
        on=options.on,
        procs=options.procs,
        timeout_s=options.timeout_s,
        resume=options.resume,
        limits=Limits(options.point_timeout_s, options.point_memory_bytes),
    )


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
