"""The common style of all figures: size, colours, axes, and reproducible PNG files."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from PIL import Image

from runtime.core.errors import UsageError

# Distinguishable for colour-blind readers: M. Okabe, K. Ito, "Color Universal Design", 2008.
BLUE, SKY, GREEN, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"
PURPLE, GREY = "#CC79A7", "#999999"
WIDTH_IN, DPI = 12.0, 100
"""1200 pixels."""
PALE = 0.35
"""Opacity of grid lines and of secondary bars."""


def new_figure(height_in: float, finding: str) -> Figure:
    """An empty figure whose title states the finding."""
    # Not of pyplot, which would keep global state and open a window system.
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained")
    figure.suptitle(finding, fontsize=14, fontweight="bold")
    return figure


def saved(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG and return `path`; raises `UsageError` if that is not possible."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    # Without an alpha channel, which `savefig` adds, a file is a tenth smaller.
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    try:
        picture.save(path, "png", optimize=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return path


def size_label(nbytes: float) -> str:
    """A number of bytes with its binary unit, such as `64 KiB`."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:g} {name}"
    return f"{nbytes:g} B"


def size_axis(axes: Axes, ticks: Sequence[int]) -> None:
    """Logarithmic axes with a grid: sizes along x, numbers along y."""
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=PALE)
    axes.set_xticks(ticks, [size_label(nbytes) for nbytes in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
