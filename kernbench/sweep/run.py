"""Runs a sweep from top to bottom: points, table, figure, report."""

from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from coordinator.report.text_table import print_table
from kernbench.command.exit_codes import ExitCode
from kernbench.command.native_part import build_native_part
from kernbench.points.driver import PointMeasurement, measured_points
from kernbench.points.rows_file import RowsFile
from kernbench.studies.parameter_study import requires_matplotlib
from kernbench.sweep import sweep_table as csv_table
from kernbench.sweep.columns import FAULT, TIME, Result, sweep_columns
from kernbench.sweep.figures import AUTO, draw
from kernbench.sweep.figures_quantity import Quantity, metric_names, quantities
from kernbench.sweep.files import (
    CSV,
    FIGURE,
    REQUEST,
    ROWS,
    SweepDescription,
    begin,
    read_description,
    require_same_sweep,
    sweep_directory,
    write_table,
)
from kernbench.sweep.points import SweepPoint
from kernbench.sweep.report import (
    best_and_worst,
    fault_lines,
    file_lines,
    heading,
    sweep_table,
)
from kernbench.sweep.request import NO_PLOT, FigureRequest, SweepRequest
from kernbench.sweep.row import SweepRow
from runtime.core.errors import UsageError
from runtime.core.output import print_lines
from runtime.core.simtime import format_ps


def sweep(request: SweepRequest) -> int:
    """Measure all points, write the files, print the report; returns the exit code."""
    description = request.description
    if description.plot != NO_PLOT:
        # Before the simulations, which would be lost without matplotlib.
        with requires_matplotlib():
            import_module("matplotlib")
    build_native_part(request.measurement.program)
    name = Path(request.measurement.program.name).stem
    unfinished = None if request.options.resume is False else description
    with sweep_directory(request.out, name, unfinished) as directory:
        columns = sweep_columns(_results(request, directory))
        files = [*write_table(directory, columns), directory / REQUEST, directory / ROWS]
        faults = [fault for fault in columns[FAULT] if fault is not None]
        metrics, problem = dict[str, Quantity](), ""
        if len(faults) < len(request.points):
            try:
                metrics = _metrics(directory / CSV, description.metric, columns)
                files += _drawn(directory, description)
            except UsageError as error:
                # The points are measured: the report shows them, also without a figure.
                problem = f"sweep: {error}; kernbench sweep --from {directory} draws another figure"
    print_table(sweep_table(columns, metrics))
    print_lines([*best_and_worst(columns, metrics), *fault_lines(columns), *file_lines(files)])
    if problem:
        raise UsageError(problem)
    return ExitCode.FAILED if faults else ExitCode.PASSED


def draw_again(request: FigureRequest) -> int:
    """Draw the figure of a sweep from its CSV; returns the exit code."""
    directory = request.directory
    description = read_description(directory)
    metric = request.metric or (description.metric if description else TIME)
    plot = request.plot or (description.plot if description else AUTO)
    if plot == NO_PLOT:
        plot = AUTO
    figure = draw(directory / CSV, directory / FIGURE, metric, plot)
    print_lines(file_lines([figure]))
    return ExitCode.PASSED


def _results(request: SweepRequest, directory: Path) -> dict[SweepPoint, Result]:
    """The row of each point, measured or kept from an earlier start."""
    if request.options.resume is None:
        require_same_sweep(directory, request.description)
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


def _metrics(csv: Path, metric: str, columns: Collection[str]) -> dict[str, Quantity]:
    """The columns of the metric by their names; `UsageError` for a column that is not there."""
    names = metric_names(metric, columns)
    # A name may begin with a sign, which states whether more is better.
    return {
        name if name in columns else name[1:]: quantity
        for name, quantity in zip(names, quantities(csv_table.read(csv), metric), strict=True)
    }


def _drawn(directory: Path, description: SweepDescription) -> list[Path]:
    if description.plot == NO_PLOT:
        return []
    csv, figure = directory / CSV, directory / FIGURE
    return [draw(csv, figure, description.metric, description.plot)]
