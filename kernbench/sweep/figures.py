"""The figure of a sweep, drawn from its CSV alone: nothing is simulated.

The number of swept keys selects the plot: a curve for one, a heat map for two, a tornado for more,
a curve for a zip sweep, and a Pareto front for two metrics. The same CSV gives the same bytes.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from kernbench.studies.parameter_study import requires_matplotlib
from kernbench.sweep import sweep_table
from kernbench.sweep.figures_quantity import metric_names, quantities
from kernbench.sweep.sweep_table import SweepTable
from runtime.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AUTO, CURVE, HEATMAP, PARETO, TORNADO = PLOTS = ("auto", "curve", "heatmap", "pareto", "tornado")


def draw(csv: Path, png: Path, metric: str = "time_ns", plot: str = AUTO) -> Path:
    """Draw the sweep in `csv` as the picture `png` and return it.

    `metric` is a column of numbers, or two with a comma between them for a Pareto front. Raises
    `UsageError` in one line for a file, metric or plot that does not fit.
    """
    with requires_matplotlib():
        from kernbench.studies.plots import saved

        drawn = figure(sweep_table.read(csv), metric, plot)
    return saved(drawn, png)


def figure(table: SweepTable, metric: str, plot: str) -> "Figure":
    """The figure of a sweep that has been read."""
    names = metric_names(metric, (*table.columns, *table.keys))
    selected = selected_plot(plot, keys=len(table.keys), is_grid=table.is_grid, metrics=len(names))
    faults = [row.fault for row in table.rows if row.fault]
    if len(faults) == len(table.rows):
        raise UsageError(f"nothing to draw: all {len(faults)} points are faults: {faults[0]}")
    metrics = quantities(table, metric)
    # Each of these imports loads matplotlib.
    if selected == CURVE:
        from kernbench.sweep.figures_curve import curve

        return curve(table, *metrics)
    if selected == HEATMAP:
        from kernbench.sweep.figures_heatmap import heatmap

        return heatmap(table, *metrics)
    if selected == PARETO:
        from kernbench.sweep.figures_pareto import pareto

        return pareto(table, *metrics)
    from kernbench.sweep.figures_tornado import tornado

    return tornado(table, *metrics)


def selected_plot(plot: str, *, keys: int, is_grid: bool, metrics: int) -> str:
    """The plot of a sweep by its number of swept keys and of metrics.

    `is_grid` is false for a zip sweep. Raises `UsageError` for a plot that does not fit.
    """
    if plot not in PLOTS:
        raise UsageError(f"--plot {plot!r} is unknown{nearest(plot, PLOTS)}")
    if plot == AUTO:
        plot = _by_number(keys, is_grid=is_grid, metrics=metrics)
    problem = _problem_of(plot, keys, is_grid=is_grid, metrics=metrics)
    if problem:
        raise UsageError(f"--plot {plot}: {problem}")
    return plot


def _by_number(keys: int, *, is_grid: bool, metrics: int) -> str:
    if metrics > 1:
        return PARETO
    if keys == 1 or not is_grid:
        return CURVE
    return HEATMAP if keys == 2 else TORNADO


def _problem_of(plot: str, keys: int, *, is_grid: bool, metrics: int) -> str:
    """Why a plot does not fit, or nothing."""
    needed = 2 if plot == PARETO else 1
    if metrics != needed:
        example = ", such as --metric time_ns,COLUMN" if plot == PARETO else ""
        return f"it needs {needed} metric{'s' * (needed > 1)}, not {metrics}{example}"
    if plot == HEATMAP and keys != 2:
        return f"it needs 2 swept keys, not {keys}; --plot auto selects by their number"
    if plot in (HEATMAP, TORNADO) and not is_grid:
        return "it needs all combinations of the values, and a zip sweep has not; use --plot curve"
    if plot == CURVE and is_grid and keys > 2:
        return f"it needs 1 or 2 swept keys, not {keys}; use --plot tornado"
    return ""
