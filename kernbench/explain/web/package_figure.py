"""The figures of the hardware: a SIP with the load of its links, and the network between SIPs."""

# Bokeh leaves the types of its properties open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColorBar, DataRange1d, FixedTicker, LinearColorMapper

from kernbench.explain.web.colours import HIGHLIGHT, IDLE, KINDS, load_palette
from kernbench.explain.web.fabric_geometry import FabricDrawing
from kernbench.explain.web.figures import FONT, hover, new_figure, source, span
from kernbench.explain.web.geometry import IO, DrawnBox, Segment, SipDrawing

_BOX = "name kind title cube pe x y w h colour"
_SEGMENT = "name x0 y0 x1 y1 bandwidth width busy load"
_LINK_WIDTH, _DELAY_WIDTH = 1.6, 0.8
_MAP_HEIGHT, _SIP_HEIGHT = 260, 720
_MARGIN = 0.5
"""Around the SIPs, in distances of two of them."""
_TOOLS = "pan,wheel_zoom,box_zoom,reset,tap"
_AT: Any = {"x": "x", "y": "y"}
_RECTANGLE: Any = _AT | {"width": "w", "height": "h"}
_ENDS: Any = {"x0": "x0", "y0": "y0", "x1": "x1", "y1": "y1"}
"""The columns of a source with the position of a glyph."""
_TITLE: Any = _AT | {"text": "title", "text_align": "center", "text_baseline": "middle"}
_SELECTED: Any = {"selection_line_color": HIGHLIGHT, "selection_line_width": 3}


def sip_figure(drawing: SipDrawing, title: str, *, loads: bool) -> Any:
    """The SIP. The source `links` has a column `busy`: the share of the interval in percent."""
    made = _map("sip", title, _SIP_HEIGHT)
    mapper = LinearColorMapper(palette=load_palette(), low=0, high=100)
    _boxes(made, "cubes", drawing.cubes, fill_alpha=0.07)
    slices = _slices(made, drawing.slices, mapper)
    boxes = _boxes(made, "boxes", drawing.boxes, fill_alpha=0.6)
    _outlined_boxes(made)
    _outlined_links(made, "path_links")
    links = _links(made, "links", drawing.segments, mapper)
    made.scatter(
        **_AT,
        size=4,
        color=IDLE,
        source=source("routers", [_box(each) for each in drawing.routers], _BOX),
        nonselection_alpha=1.0,
    )
    _labels(made, "cube_titles", drawing.stacks, size="12px")
    named = [box for box in drawing.boxes if box.title]
    _labels(made, "io_titles", [box for box in named if box.kind == IO], size="12px")
    _labels(made, "titles", [box for box in named if box.kind != IO], size="11px")
    made.add_tools(
        hover([boxes, slices], ("", "@kind @name")),
        hover([links], ("link", "@name"), ("bandwidth", "@bandwidth"), ("load", "@load")),
    )
    if loads:
        _colour_bar(made, mapper)
    return made


def fabric_figure(drawing: FabricDrawing, kind: str, *, loads: bool) -> Any:
    """The SIPs and the links between them; a tap on a SIP selects it."""
    made = _map("fabric", f"{len(drawing.points)} SIPs: {kind}", _MAP_HEIGHT, square=False)
    xs, ys = zip(*drawing.points, strict=True)
    made.x_range = span(min(xs) - _MARGIN, max(xs) + _MARGIN)
    made.y_range = span(max(ys) + _MARGIN, min(ys) - _MARGIN)
    mapper = LinearColorMapper(palette=load_palette(), low=0, high=100)
    _outlined_links(made, "path_sip_links")
    segments = [link.segment for link in drawing.links]
    links = _links(made, "sip_links", segments, mapper)
    if drawing.switched:
        made.scatter(x=[0], y=[0], size=16, color=KINDS["UCIe port"], marker="diamond")
    boxes = _sips(made, drawing)
    made.add_tools(
        hover([boxes], ("", "@name")),
        hover([links], ("link", "@name"), ("bandwidth", "@bandwidth"), ("load", "@load")),
    )
    if loads:
        _colour_bar(made, mapper)
    return made


def _sips(made: Any, drawing: FabricDrawing) -> Any:
    """The squares of the SIPs, with their numbers."""
    sips = [
        DrawnBox(
            kind="SIP",
            name=f"SIP {sip}",
            title=str(sip),
            cube=-1,
            pe=sip,
            x_mm=x,
            y_mm=y,
            w_mm=0.5,
            h_mm=0.5,
        )
        for sip, (x, y) in enumerate(drawing.points)
    ]
    boxes = made.scatter(
        **_AT,
        # A large ring has little space for each.
        size=max(8, min(22, 640 // len(sips))),
        marker="square",
        fill_color=KINDS["PE"],
        line_color=None,
        source=source("sips", [_box(each) for each in sips], _BOX),
        nonselection_alpha=0.55,
        **_SELECTED,
    )
    made.text(
        **_TITLE,
        text_color="white",
        name="sip_numbers",
        text_font={"value": FONT},
        text_font_size="12px" if len(sips) <= 32 else "8px",
        source=boxes.data_source,
        nonselection_alpha=1.0,
    )
    return boxes


def _map(name: str, title: str, height: int, *, square: bool = True) -> Any:
    made = new_figure(
        name,
        title,
        height,
        _TOOLS,
        match_aspect=square,
        x_range=DataRange1d(range_padding=0.03),
        # The file counts y downwards from the north-west corner.
        y_range=DataRange1d(range_padding=0.03, flipped=True),
        active_scroll="wheel_zoom",
    )
    made.axis.visible = made.grid.visible = False
    return made


def _boxes(made: Any, name: str, boxes: Sequence[DrawnBox], **look: Any) -> Any:
    return made.rect(
        **_RECTANGLE,
        fill_color="colour",
        line_color="colour",
        source=source(name, [_box(each) for each in boxes], _BOX),
        nonselection_fill_alpha=look["fill_alpha"],
        nonselection_line_alpha=1.0,
        **_SELECTED,
        **look,
    )


def _slices(made: Any, slices: Sequence[DrawnBox], mapper: Any) -> Any:
    rows = [(*_box(each), 0.0, "") for each in slices]
    return made.rect(
        **_RECTANGLE,
        fill_color={"field": "busy", "transform": mapper},
        fill_alpha=0.5,
        line_color=KINDS["HBM slice"],
        source=source("slices", rows, f"{_BOX} busy load"),
        nonselection_fill_alpha=0.5,
        nonselection_line_alpha=1.0,
        **_SELECTED,
    )


def _outlined_boxes(made: Any) -> None:
    """The PEs of the critical path, filled by the script of the page."""
    made.rect(
        **_RECTANGLE,
        fill_color=None,
        line_color=HIGHLIGHT,
        line_width=2.5,
        source=source("path_boxes", [], "x y w h"),
    )


def _outlined_links(made: Any, name: str) -> None:
    """The links of the critical path, filled by the script of the page."""
    made.segment(
        **_ENDS,
        line_color=HIGHLIGHT,
        line_width=6,
        line_alpha=0.5,
        source=source(name, [], "x0 y0 x1 y1"),
    )


def _links(made: Any, name: str, segments: Sequence[Segment], mapper: Any) -> Any:
    rows = [_segment(each) for each in segments]
    return made.segment(
        **_ENDS,
        line_width="width",
        line_color={"field": "busy", "transform": mapper},
        source=source(name, rows, _SEGMENT),
        nonselection_line_alpha=1.0,
        selection_line_color=HIGHLIGHT,
        selection_line_width=5,
    )


def _labels(made: Any, name: str, boxes: Sequence[DrawnBox], size: str) -> None:
    made.text(
        name=f"{name}_text",
        **_TITLE,
        text_font={"value": FONT},
        text_font_size=size,
        source=source(name, [_box(each) for each in boxes], _BOX),
    )


def _colour_bar(made: Any, mapper: Any) -> None:
    bar = ColorBar(
        color_mapper=mapper,
        title="busy, % of the interval",
        title_text_font=FONT,
        title_text_font_style="normal",
        title_text_font_size="12px",
        major_label_text_font=FONT,
        ticker=FixedTicker(ticks=[0, 20, 40, 60, 80, 100]),
        height=10,
        background_fill_color=None,
    )
    made.add_layout(bar, "below")


def _box(box: DrawnBox) -> tuple[object, ...]:
    colour = KINDS.get(box.kind, IDLE)
    place = (round(each, 4) for each in (box.x_mm, box.y_mm, box.w_mm, box.h_mm))
    return (box.name, box.kind, box.title, box.cube, box.pe, *place, colour)


def _segment(link: Segment) -> tuple[object, ...]:
    ends = (round(each, 4) for each in (link.x0, link.y0, link.x1, link.y1))
    if link.is_down:
        return (link.name, *ends, "none: it is down", _DELAY_WIDTH, 0.0, "")
    if link.bw_gbs is None:
        return (link.name, *ends, "none: it only delays", _DELAY_WIDTH, 0.0, "")
    return (link.name, *ends, f"{link.bw_gbs:g} GB/s", _LINK_WIDTH, 0.0, "")
