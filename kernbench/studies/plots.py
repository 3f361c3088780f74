"""The common style of all figures: size, colours, axes, and reproducible PNG files."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from PIL import Image

from runtime.core.errors import UsageError

# Distinguishable for colour-blind readers: M. Okabe, K. Ito, "Color Universal Design", 2008.
BLUE, SKY, GREEN, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"
PURPLE, GREY = "#CC79A7", "#999999"
SEVEN_LOOKS = (
    (BLUE, "o"),
    (SKY, "v"),
    (ORANGE, "D"),
    (GREEN, "^"),
    (VERMILION, "s"),
    (PURPLE, "P"),
    ("black", "X"),
)
"""Colours and markers of lines of which many are in one panel."""
LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (VERMILION, "D"))
"""Colours and markers of a few lines."""
HATCHED: dict[str, Any] = {"edgecolor": "white", "hatch": "////"}
"""A part of a bar."""
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


def panels_of(figure: Figure, count: int, columns: int) -> list[Axes]:
    """`count` panels with common axes, line by line; those that complete the last line are off."""
    lines = -(-count // columns)
    panels = list(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_axis_off()
    return panels[:count]


def looks(count: int, styles: Sequence[tuple[str, str]] = LOOKS) -> list[tuple[str, str]]:
    """Colour and marker of each of `count` lines; styles repeat."""
    return list(islice(cycle(styles), count))


def key(label: str, colour: str = "black", **look: Any) -> Line2D:
    """A line of a legend, which may have a marker."""
    return Line2D([], [], color=colour, label=label, **look)


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int = 0) -> None:
    """A legend below all panels, by default in one line."""
    columns = columns or len(handles)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def centred(axes: Axes, x: float, y: float, text: str, size: float, **look: Any) -> None:
    """A text with its centre at a point."""
    axes.text(x, y, text, ha="center", va="center", fontsize=size, **look)


def value_grid(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Lines behind the bars at the ticks of an axis, `x` or `y`."""
    axes.grid(axis=axis, alpha=PALE)
    axes.set_axisbelow(True)


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
    """Logarithmic axes with sizes along x."""
    log_axes(axes, ticks, size_label)


def log_axes(axes: Axes, ticks: Sequence[int], label: Callable[[int], str]) -> None:
    """Logarithmic axes with a grid: a labelled tick at each of `ticks` along x, numbers along y."""
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=PALE)
    axes.set_xticks(ticks, [label(each) for each in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
