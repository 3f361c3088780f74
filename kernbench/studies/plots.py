"""The look of all figures: their width, colours and files."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from runtime.core.errors import UsageError

# Colours that everyone can tell apart: M. Okabe, K. Ito, "Color Universal Design", 2008.
BLUE, SKY, GREEN, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"
PURPLE = "#CC79A7"
WIDTH_IN, DPI = 12.0, 100
"""1200 pixels."""
PALE = 0.35


def new_figure(height_in: float, finding: str) -> Figure:
    """An empty figure whose title says what it shows."""
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(finding, fontsize=14, fontweight="bold")
    return figure


def saved(figure: Figure, path: Path) -> Path:
    """Write a figure; raises `UsageError` where that is not possible."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return path


def size_label(nbytes: float) -> str:
    """Bytes as people say them."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:g} {name}"
    return f"{nbytes:g} B"


def size_axis(axes: Axes, ticks: Sequence[int]) -> None:
    """Logarithmic axes with a grid, sizes along x, numbers along y."""
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=PALE)
    axes.set_xticks(ticks, [size_label(nbytes) for nbytes in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
