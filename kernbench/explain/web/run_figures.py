"""The figures of a run: load over time with the brush, timeline, roofline."""

# Bokeh leaves the types of its properties open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

from bokeh.models import FixedTicker, NumeralTickFormatter, RangeTool

from kernbench.explain.web.colours import HIGHLIGHT, KINDS
from kernbench.explain.web.figures import FONT, hover, new_figure, source, span
from kernbench.explain.web.geometry import PE, PORT, SLICE
from kernbench.explain.web.kernel_work import KernelWork
from kernbench.oracle.theory.bandwidths import peak_macs_per_cycle, slice_gbs
from kernbench.oracle.theory.topology_file import TopologyFile

_BARS = "left right bottom top colour row what time share"


def load_figure(total_ns: float, interval: Any) -> Any:
    """The mean load of the links of the SIP over the run; its brush is the range `interval`."""
    made = new_figure(
        "loads",
        "Load of the links: drag the brush to choose the interval",
        170,
        "",
        x_range=span(0, total_ns),
        y_range=span(0, 100),
    )
    made.toolbar_location = None
    for name, colour in (("busiest", KINDS[PORT]), ("mean", KINDS[PE])):
        made.quad(
            left="left",
            right="right",
            bottom=0,
            top=name,
            fill_color=colour,
            line_color=None,
            legend_label={"busiest": "busiest link", "mean": "mean of the links in use"}[name],
            source=source(f"load_{name}", [], f"left right {name}"),
        )
    made.legend.orientation = "horizontal"
    made.legend.location = "right"
    # Beside the bars, which fill the frame.
    made.add_layout(made.legend[0], "above")
    made.legend.padding = 2
    made.legend.label_text_font = FONT
    made.legend.background_fill_alpha = 0
    made.legend.border_line_color = None
    made.add_tools(
        RangeTool(x_range=interval, overlay=_brush(), name="brush"),
    )
    _time_axis(made)
    made.yaxis.axis_label = "busy, %"
    made.yaxis.ticker = FixedTicker(ticks=[0, 50, 100])
    return made


def _brush() -> Any:
    from bokeh.models import BoxAnnotation

    return BoxAnnotation(
        name="brush_box",
        fill_color=HIGHLIGHT,
        fill_alpha=0.15,
        line_color=HIGHLIGHT,
        line_alpha=0.9,
        line_width=2,
        level="overlay",
    )


def timeline_figure(interval: Any) -> Any:
    """The rows of the timeline, which the script of the page fills."""
    made = new_figure(
        "timeline",
        "Timeline",
        300,
        "xpan,xwheel_zoom,xbox_zoom,tap",
        x_range=interval,
        y_range=span(1, 0),
        active_scroll=None,
    )
    bars = made.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        fill_color="colour",
        line_color=None,
        source=source("bars", [], _BARS),
        nonselection_fill_alpha=1.0,
    )
    made.add_tools(hover([bars], ("", "@row"), ("", "@what"), ("time", "@time"), ("", "@share")))
    _time_axis(made)
    made.ygrid.visible = False
    made.yaxis.ticker = FixedTicker(ticks=[])
    made.yaxis.minor_tick_line_color = made.yaxis.major_tick_line_color = None
    return made


def _time_axis(made: Any) -> None:
    made.xaxis.axis_label = "simulated time, ns"
    made.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")


def roofline_figure(file: TopologyFile, works: Sequence[KernelWork]) -> Any:
    """The kernels below the roofs of a PE: HBM slice, GEMM engine, vector engine."""
    gemm = 2 * float(peak_macs_per_cycle(file) * file.number("pe.gemm.clock_ghz"))
    vector = float(file["pe.math.lanes"] * file.number("pe.math.clock_ghz"))
    hbm = float(slice_gbs(file))
    drawn = [work for work in works if work.flops and work.hbm_bytes]
    intensities = [work.intensity for work in drawn]
    left = min([gemm / hbm / 1000, *intensities]) / 2
    right = max([gemm / hbm * 10, *intensities]) * 2
    low = min([vector / 100, *(work.gflops for work in drawn)]) / 2
    made = new_figure(
        "roofline",
        "Roofline of the kernels, for one PE",
        340,
        "pan,wheel_zoom,box_zoom,reset",
        x_axis_type="log",
        y_axis_type="log",
        x_range=span(left, right),
        y_range=span(low, gemm * 3),
    )
    _roofs(made, (gemm, vector, hbm), (left, right, low))
    _kernels(made, drawn)
    made.xaxis.axis_label = "arithmetic intensity, FLOP per byte of HBM"
    made.yaxis.axis_label = "GFLOP/s of one PE"
    return made


def _kernels(made: Any, drawn: Sequence[KernelWork]) -> None:
    """A point for each kernel, with its numbers below the pointer."""
    rows = [
        (work.intensity, work.gflops, work.kernel, len(work.pes), work.flops, work.hbm_bytes)
        for work in drawn
    ]
    points = made.scatter(
        x="x",
        y="y",
        size=12,
        fill_color=HIGHLIGHT,
        line_color=None,
        source=source("kernels", rows, "x y kernel pes flops bytes"),
    )
    made.add_tools(
        hover(
            [points],
            ("kernel", "@kernel"),
            ("intensity", "@x{0.000} FLOP/B"),
            ("rate", "@y{0,0.000} GFLOP/s per PE"),
            ("PEs", "@pes"),
        )
    )


def _roofs(made: Any, peaks: tuple[float, float, float], frame: tuple[float, float, float]) -> None:
    """The rates of GEMM engine, vector engine and HBM slice, in the frame of left, right, low."""
    (gemm, vector, hbm), (left, right, low) = peaks, frame
    roofs = (
        (gemm, KINDS[PE], f"GEMM engine {gemm:,g} GFLOP/s"),
        (vector, KINDS[PORT], f"vector engine {vector:,g} GFLOP/s"),
    )
    for roof, colour, name in roofs:
        made.line([roof / hbm, right], [roof, roof], line_color=colour, line_width=2)
        made.text(
            x=[right / 1.2],
            y=[roof * 1.1],
            text=[name],
            text_align="right",
            text_font={"value": FONT},
            text_font_size="12px",
        )
    made.line([left, gemm / hbm], [left * hbm, gemm], line_color=KINDS[SLICE], line_width=2)
    made.text(
        x=[left * 1.1],
        y=[max(left * hbm * 2.2, low * 1.5)],
        text=[f"HBM slice {hbm:g} GB/s"],
        text_font={"value": FONT},
        text_font_size="12px",
    )
