"""Runs a sweep from top to bottom: points, table, figure, report."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from coordinator.report.text_table import print_table
from kernbench.cli.exit_codes import ExitCode, print_warning
from kernbench.cli.native_part import build_native_part
from kernbench.points.driver import PointMeasurement, measured_points
from kernbench.points.rows_file import RowsFile
from kernbench.studies.parameter_study import requires_matplotlib
from kernbench.sweep.columns import FAULT, TIME, Cell, Result, sweep_columns
from kernbench.sweep.files import (
    CSV,
    FIGURE,
    REQUEST,
    ROWS,
    begin,
    read_description,
    sweep_directory,
    write_table,
)
from kernbench.sweep.points import SweepPoint
from kernbench.sweep.report import extremes, fault_lines, file_lines, heading, sweep_table
from kernbench.sweep.request import AUTO, FigureRequest, SweepRequest
from kernbench.sweep.row import SweepRow
from runtime.core.errors import UsageError, nearest
from runtime.core.output import print_lines
from runtime.core.simtime import format_ps

NO_PLOT = "none"


def sweep(request: SweepRequest) -> int:
    """Measure all points, write the files, print the report; returns the exit code."""
    description = request.description
    if description.plot != NO_PLOT:
        # Before the simulations, which would be lost without matplotlib.
        _drawing()
    build_native_part(request.measurement.program)
    with sweep_directory(request.out, Path(request.measurement.program.name).stem) as directory:
        columns = sweep_columns(_results(request, directory))
        files = [*write_table(directory, columns), directory / REQUEST, directory / ROWS]
        problem = _problem(columns, description.metric)
        if not problem:
            files += _drawn(directory, columns, description.metric, description.plot)
    return _report(columns, TIME if problem else description.metric, files, problem)


def draw_again(request: FigureRequest) -> int:
    """Draw the figure of a sweep from its CSV; returns the exit code."""
    directory = request.directory
    description = read_description(directory)
    metric = request.metric or (description.metric if description else TIME)
    plot = request.plot or (description.plot if description else AUTO)
    if plot == NO_PLOT:
        plot = AUTO
    figure = directory / FIGURE
    _drawing()(directory / CSV, figure, metric, plot)
    print_lines(file_lines([figure]))
    return ExitCode.PASSED


def _results(request: SweepRequest, directory: Path) -> dict[SweepPoint, Result]:
    """The row of each point, measured or kept from an earlier start."""
    measurement = PointMeasurement(request.measurement.measure, SweepRow, "points", _outcome)
    rows_file = RowsFile(
        directory / ROWS,
        SweepRow,
        request.points,
        request.description.configuration,
        resume=request.options.resume,
    )
    with rows_file:
        begin(directory, request.description)
        print_lines([heading(request.description, len(request.points))])
        return measured_points(measurement, request.points, request.options, rows_file)


def _outcome(row: SweepRow) -> str:
    return f"FAULT: {row.fault}" if row.fault else format_ps(row.time_ps)


def _problem(columns: Mapping[str, Sequence[Cell]], metric: str) -> str:
    """Why the metric cannot be shown; empty if it can."""
    numbers = [
        name
        for name, cells in columns.items()
        if any(isinstance(cell, int | float) for cell in cells)
    ]
    if metric in numbers or all(fault is not None for fault in columns[FAULT]):
        return ""
    if metric in columns:
        return f"--metric {metric}: a column of text"
    return f"--metric {metric}: no column of this sweep{nearest(metric, numbers)}"


def _drawn(
    directory: Path, columns: Mapping[str, Sequence[Cell]], metric: str, plot: str
) -> list[Path]:
    """The figure; none without a number, and if it cannot be drawn."""
    if plot == NO_PLOT or all(fault is not None for fault in columns[FAULT]):
        return []
    figure = directory / FIGURE
    try:
        _drawing()(directory / CSV, figure, metric, plot)
    except UsageError as error:
        # The points are measured, and another figure can be drawn from them.
        print_warning(f"no figure: {error}; kernbench sweep --from {directory} draws another one")
        return []
    return [figure]


def _drawing() -> Callable[[Path, Path, str, str], None]:
    """The function that draws; raises `UsageError` without matplotlib."""
    with requires_matplotlib():
        from kernbench.sweep.figures import draw
    return draw


def _report(
    columns: Mapping[str, Sequence[Cell]], metric: str, files: Sequence[Path], problem: str
) -> int:
    print_table(sweep_table(columns, metric))
    print_lines([*extremes(columns, metric), *fault_lines(columns), *file_lines(files)])
    if problem:
        directory = files[0].parent
        raise UsageError(
            f"sweep: {problem}; kernbench sweep --from {directory} --metric COLUMN draws another"
        )
    has_faults = any(fault is not None for fault in columns[FAULT])
    return ExitCode.FAILED if has_faults else ExitCode.PASSED
