"""Parts that all figures of the page share: a frame of Bokeh without logo, and typed columns."""

# Bokeh leaves the types of its properties open.
# pyright: reportUnknownMemberType=false, reportArgumentType=false

from collections.abc import Iterable, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


def new_figure(name: str, title: str, height: int, tools: str, **rest: Any) -> Any:
    """A figure as wide as its place; the script of the page sets the colours of both themes."""
    made: Any = figure(
        name=name,
        title=title,
        height=height,
        sizing_mode="stretch_width",
        tools=tools,
        toolbar_location="right",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **rest,
    )
    made.toolbar.logo = None
    made.title.text_font = FONT
    made.title.text_font_size = "14px"
    for axis in made.axis:
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.axis_label_text_font_style = "normal"
    return made


def source(name: str, rows: Iterable[Sequence[Any]], columns: str) -> Any:
    """A named source of data: one tuple for each row, the names of the columns in `columns`."""
    names = columns.split()
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    return ColumnDataSource(
        name=name, data={key: list(each) for key, each in zip(names, values, strict=True)}
    )


def hover(renderers: Sequence[Any], *lines: tuple[str, str]) -> Any:
    """A tooltip for the first glyph below the pointer."""
    return HoverTool(renderers=list(renderers), tooltips=list(lines), point_policy="follow_mouse")


def span(start: float, end: float, **rest: Any) -> Any:
    """A range of an axis."""
    return Range1d(start=start, end=end, **rest)
