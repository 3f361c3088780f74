"""Labels beside points of a figure, which cover neither each other nor points nor a line."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from kernbench.studies.plots import DPI

_POINTS = 9
_OFFSETS = tuple(
    (x * distance, y * distance)
    for distance in (8, 13)
    for x, y in ((-1, -1), (1, 1), (1, -1), (-1, 1), (0, -1.2), (0, 1.2), (1.4, 0), (-1.4, 0))
)
"""Places of a label around its point, in points of print, the preferred ones first."""
_ALIGNMENTS = {-1: 1.0, 0: 0.5, 1: 0.0}
"""The share of a label that is left of, or below, its position, by sign of the offset."""
_MARKER_PX = 6.0
_LINE_PX = 2.0
_ACROSS: Mapping[int, Literal["left", "center", "right"]] = {-1: "right", 0: "center", 1: "left"}
_UPWARD: Mapping[int, Literal["bottom", "center", "top"]] = {-1: "top", 0: "center", 1: "bottom"}

XY = tuple[float, float]


def place_labels(
    figure: Figure, axes: Axes, labels: Mapping[XY, str], points: Sequence[XY], line: Sequence[XY]
) -> None:
    """Write labels beside their points, those without room not; nothing may be drawn after it.

    `points` and the vertices of `line` are what labels may not cover.
    """
    canvas = FigureCanvasAgg(figure)
    # Positions in pixels are those of the final layout only after a drawing.
    canvas.draw()
    pixels = axes.transData.transform
    marks = pixels(np.array(points))
    vertices = pixels(np.array(line))
    lows, highs = np.minimum(vertices[:-1], vertices[1:]), np.maximum(vertices[:-1], vertices[1:])
    taken = np.concatenate(
        [
            np.hstack([marks - _MARKER_PX, marks + _MARKER_PX]),
            np.hstack([lows - _LINE_PX, highs + _LINE_PX]),
        ]
    )
    for xy, text in labels.items():
        note = axes.annotate(text, xy, (0, 0), textcoords="offset points", fontsize=_POINTS)
        note.set_in_layout(False)
        extent = note.get_window_extent(canvas.get_renderer())
        x, y = pixels(xy)
        for offset in _OFFSETS:
            box = _box((float(x), float(y)), offset, extent)
            if _is_within(box, axes.bbox) and not _covers(box, taken):
                taken = np.vstack([taken, box.extents])
                _move(note, offset)
                break
        else:
            note.remove()


def _box(xy_px: XY, offset: XY, extent: Bbox) -> Bbox:
    """The area of a label at an offset from its point; `extent` has its size."""
    shares = [_ALIGNMENTS[_sign(each)] for each in offset]
    x, y = (place + distance * DPI / 72 for place, distance in zip(xy_px, offset, strict=True))
    left, low = x - extent.width * shares[0], y - extent.height * shares[1]
    return Bbox.from_bounds(left, low, extent.width, extent.height)


def _move(note: Annotation, offset: XY) -> None:
    horizontal, vertical = map(_sign, offset)
    note.xyann = offset
    note.set_horizontalalignment(_ACROSS[horizontal])
    note.set_verticalalignment(_UPWARD[vertical])


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _is_within(box: Bbox, outer: Bbox) -> bool:
    return outer.x0 <= box.x0 and box.x1 <= outer.x1 and outer.y0 <= box.y0 and box.y1 <= outer.y1


def _covers(box: Bbox, areas: NDArray[np.float64]) -> bool:
    """Whether a box overlaps an area; a line of `areas` is left, lower, right, upper."""
    left, low, right, high = areas.T
    across = (left <= box.x1) & (box.x0 <= right)
    return bool(np.any(across & (low <= box.y1) & (box.y0 <= high)))
