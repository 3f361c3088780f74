"""The look of all figures: their width, colours and files."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from runtime.errors import UsageError

# Colours that everyone can tell apart: M. Okabe, K. Ito, "Color Universal Design", 2008.
BLUE, SKY, GREEN, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"
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
