"""Labels beside points of a figure, which cover neither each other nor points nor a line."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.transforms import Bbox

from kernbench.studies.plots import DPI, GREY

_POINTS = 9
_OFFSETS = tuple(
    (x * distance, y * distance)
    for distance in (8, 20, 36, 56)
    for x, y in ((-1, -1), (1, 1), (1, -1), (-1, 1), (0, -1.2), (0, 1.2), (1.4, 0), (-1.4, 0))
)
"""Places of a label around its point, in points of print, the preferred ones first."""
_NEAR = 12
"""A label at a greater distance has a line to its point."""
_MARKER_PX = 6.0
_LINE_PX = 2.0

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

    def pixels(xy: XY) -> XY:
        x, y = axes.transData.transform(xy)
        return float(x), float(y)

    taken = [_around(x, y, _MARKER_PX) for x, y in map(pixels, points)]
    taken += [
        Bbox([[min(x0, x1), min(y0, y1)], [max(x0, x1), max(y0, y1)]]).padded(_LINE_PX)
        for (x0, y0), (x1, y1) in pairwise(map(pixels, line))
    ]
    for xy, text in labels.items():
        width, height, _ = canvas.get_renderer().get_text_width_height_descent(
            text, FontProperties(size=_POINTS), ismath=False
        )
        for offset, box in _candidates(pixels(xy), width, height):
            if _is_within(box, axes.bbox) and not box.count_overlaps(taken):
                taken.append(box)
                _annotate(axes, text, xy, offset)
                break


def _candidates(xy_px: XY, width: float, height: float) -> Iterator[tuple[XY, Bbox]]:
    """Offsets of a label in points, each with the area it covers."""
    for dx, dy in _OFFSETS:
        x, y = xy_px[0] + dx * DPI / 72, xy_px[1] + dy * DPI / 72
        left = x - width * (dx < 0) - width / 2 * (dx == 0)
        low = y - height * (dy < 0) - height / 2 * (dy == 0)
        yield (dx, dy), Bbox.from_bounds(left, low, width, height).padded(1.0)


def _is_within(box: Bbox, outer: Bbox) -> bool:
    return outer.x0 <= box.x0 and box.x1 <= outer.x1 and outer.y0 <= box.y0 and box.y1 <= outer.y1


def _around(x: float, y: float, distance: float) -> Bbox:
    return Bbox([[x - distance, y - distance], [x + distance, y + distance]])


def _annotate(axes: Axes, text: str, xy: XY, offset: XY) -> None:
    dx, dy = offset
    is_near = max(abs(dx), abs(dy)) <= _NEAR
    axes.annotate(
        text,
        xy,
        offset,
        textcoords="offset points",
        ha="center" if dx == 0 else "left" if dx > 0 else "right",
        va="center" if dy == 0 else "bottom" if dy > 0 else "top",
        fontsize=_POINTS,
        arrowprops=None if is_near else {"arrowstyle": "-", "color": GREY, "linewidth": 0.8},
    ).set_in_layout(False)
