"""The figures of the study: busy stages, utilisation of the peak, measured times against bounds.

A title states the finding, so it is computed from the rows.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

from kernbench.studies import plots
from kernbench.studies.milestone_1h_gemm.rows import GemmResults, GemmRow
from kernbench.studies.milestone_1h_gemm.theory import ProductShape, Staging

STAGES = {
    "dma_in_ps": ("DMA in", plots.BLUE),
    "fetch_ps": ("fetch", plots.SKY),
    "gemm_ps": ("GEMM", plots.VERMILION),
    "store_ps": ("store", plots.ORANGE),
    "dma_out_ps": ("DMA out", plots.GREEN),
}
"""The stages of a product in their order: the field of `StageBusy`, its name and colour."""
STAGINGS = {
    Staging.REF_REF: ("ref_ref: both operands streamed", plots.BLUE, "o"),
    Staging.LOAD_REF: ("load_ref: A loaded, B streamed", plots.ORANGE, "s"),
    Staging.LOAD_LOAD: ("load_load: both loaded", plots.GREEN, "^"),
}


def stage_breakdown(results: GemmResults) -> Figure:
    """Busy time of each stage as a share of the kernel's time, for each shape and staging."""
    by_shape = _by_shape(results.rows)
    figure = plots.new_figure(1.9 + 0.85 * len(by_shape), _stage_finding(results.rows))
    panels = figure.subplots(1, len(Staging), sharey=True, squeeze=False)[0]
    for staging, axes in zip(Staging, panels, strict=True):
        _stage_panel(axes, staging, [rows[staging] for rows in by_shape.values()])
    panels[0].set_yticks(range(len(by_shape)), _labels(by_shape))
    panels[0].set_ylim(len(by_shape) - 0.5, -0.5)
    panels[0].set_ylabel("product, M x K x N")
    panels[1].set_xlabel(
        "busy time of a stage; the DMA is busy while a transfer is in flight\n"
        "(% of the kernel's time, which is printed to the right of the bars)"
    )
    patches = [Patch(color=colour, label=name) for name, colour in STAGES.values()]
    loading = "part that loads before the product"
    patches.insert(1, Patch(facecolor=plots.BLUE, label=loading, **plots.HATCHED))
    plots.legend_below(figure, patches)
    return figure


def utilisation(results: GemmResults) -> Figure:
    """Utilisation of the GEMM engine's peak by each product, and its limit by padding."""
    by_shape = _by_shape(results.rows)
    figure = plots.new_figure(6.6, _utilisation_finding(results.rows))
    axes = figure.subplots()
    # Three bars a shape, side by side, with the limit across them.
    for index, rows in enumerate(by_shape.values()):
        for offset, staging in zip((-0.27, 0, 0.27), Staging, strict=True):
            _utilisation_bar(axes, index + offset, rows[staging], STAGINGS[staging][1])
        limit = rows[Staging.REF_REF].padding_utilisation
        axes.hlines(limit, index - 0.43, index + 0.43, color="black", linewidth=1.8)
    axes.set_xticks(range(len(by_shape)), _labels(by_shape))
    axes.set_xlabel("product, M x K x N")
    axes.set_xlim(-0.55, len(by_shape) - 0.45)
    axes.set_ylim(0, 1.08)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylabel(f"MAC utilisation (% of the peak of {results.hardware.peak_tflops:g} TFLOPS)")
    plots.value_grid(axes, "y")
    pale = "pale: in the product, without the loading before it"
    handles = [
        *(Patch(color=colour, label=name) for name, colour, _ in STAGINGS.values()),
        Patch(color="grey", label="solid: in the whole kernel"),
        Patch(color="grey", alpha=plots.PALE, label=pale),
        plots.key("limit by padding", linewidth=1.8),
    ]
    plots.legend_below(figure, handles, 3)
    return figure


def theory(results: GemmResults) -> Figure:
    """The kernel's time against its bound, and their ratio."""
    by_shape = _by_shape(results.rows)
    figure = plots.new_figure(6.6, _theory_finding(results.rows))
    times, ratios = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _time_panel(times, results.rows)
    _ratio_panel(ratios, by_shape)
    marks = [
        plots.key(name, colour, marker=marker, linestyle="")
        for name, colour, marker in STAGINGS.values()
    ]
    hollow: dict[str, Any] = {"marker": "o", "linestyle": "", "markerfacecolor": "white"}
    marks.append(plots.key("measured = bound", linewidth=1))
    marks.append(plots.key("hollow: under one tile", "grey", **hollow))
    plots.legend_below(figure, marks, 3)
    return figure


FIGURES: Mapping[str, Callable[[GemmResults], Figure]] = {
    "gemm_stage_breakdown.png": stage_breakdown,
    "gemm_utilisation.png": utilisation,
    "gemm_theory.png": theory,
}
"""The figures by the names of their files."""


def _by_shape(rows: Sequence[GemmRow]) -> dict[ProductShape, dict[Staging, GemmRow]]:
    by_shape: dict[ProductShape, dict[Staging, GemmRow]] = {}
    for row in rows:
        by_shape.setdefault(row.shape, {})[row.staging] = row
    return by_shape


def _labels(by_shape: Mapping[ProductShape, Mapping[Staging, GemmRow]]) -> list[str]:
    rows = [rows[Staging.REF_REF] for rows in by_shape.values()]
    return [f"{row.shape}\n(under tile)" if row.under_tile else str(row.shape) for row in rows]


def _busy(row: GemmRow, stage: str) -> float:
    return getattr(row.busy, stage) / row.kernel_ps


def _stage_panel(axes: Axes, staging: Staging, rows: Sequence[GemmRow]) -> None:
    height = 0.8 / len(STAGES)
    for index, row in enumerate(rows):
        for number, (stage, (_, colour)) in enumerate(STAGES.items()):
            y = index + (number - (len(STAGES) - 1) / 2) * height
            axes.barh(y, _busy(row, stage), height * 0.9, color=colour)
            if stage == "dma_in_ps" and row.load_ps:
                # The DMA is idle between two loads, so loading can last longer than it is busy.
                loading = min(row.load_ps / row.kernel_ps, _busy(row, stage))
                axes.barh(y, loading, height * 0.9, color=colour, linewidth=0, **plots.HATCHED)
        axes.text(1.03, index, _time(row.kernel_ps), va="center", fontsize=9.5)
    axes.set_title(STAGINGS[staging][0], fontsize=11)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    plots.value_grid(axes, "x")
    axes.spines[["top", "right"]].set_visible(False)


def _utilisation_bar(axes: Axes, x: float, row: GemmRow, colour: str) -> None:
    axes.bar(x, row.product_utilisation, 0.25, color=colour, alpha=plots.PALE)
    axes.bar(x, row.utilisation, 0.25, color=colour)
    top, limit = row.product_utilisation, row.padding_utilisation
    # A number just below the line of the limit would be crossed by it: it goes above the line.
    axes.text(
        x, (limit if top > limit - 0.05 else top) + 0.01, _percent(top), ha="center", fontsize=8.5
    )


def _time_panel(axes: Axes, rows: Sequence[GemmRow]) -> None:
    for row in rows:
        x, y = row.theory.bound_ps / 1e6, row.kernel_ps / 1e6
        axes.plot(x, y, STAGINGS[row.staging][2], markersize=7, **_colours(row))
    # A square plot with equal limits: the line of equality is its diagonal.
    ends = (
        min(row.theory.bound_ps for row in rows) / 2e6,
        max(row.kernel_ps for row in rows) / 5e5,
    )
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.set_xlabel("bound from the topology file (us)")
    axes.set_ylabel("measured time of the kernel (us)")
    axes.grid(alpha=plots.PALE)


def _ratio_panel(axes: Axes, by_shape: Mapping[ProductShape, Mapping[Staging, GemmRow]]) -> None:
    for index, rows in enumerate(by_shape.values()):
        for offset, staging in zip((-0.2, 0, 0.2), Staging, strict=True):
            row, y = rows[staging], index + offset
            axes.plot(row.ratio, y, STAGINGS[staging][2], markersize=7, **_colours(row))
            axes.annotate(
                f"{row.ratio:.2f}",
                (row.ratio, y),
                (7, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
            )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.9, 1.4 * max(row.ratio for rows in by_shape.values() for row in rows.values()))
    # Most ratios lie between 1 and 2, where powers of ten have no tick.
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("measured time / bound")
    axes.set_yticks(range(len(by_shape)), _labels(by_shape))
    axes.set_ylim(len(by_shape) - 0.5, -0.5)
    axes.grid(axis="x", alpha=plots.PALE)


def _colours(row: GemmRow) -> dict[str, Any]:
    """Colours of a marker, which is hollow under one tile."""
    colour = STAGINGS[row.staging][1]
    return {"color": colour, "markerfacecolor": "white" if row.under_tile else colour}


def _largest(rows: Sequence[GemmRow]) -> dict[Staging, GemmRow]:
    return _by_shape(rows)[max(rows, key=lambda row: row.steps).shape]


def _stage_finding(rows: Sequence[GemmRow]) -> str:
    """The busiest stage of the largest product, streamed and loaded, in a sentence."""

    def busiest(row: GemmRow) -> str:
        # Of equally busy stages the GEMM engine is named: it is the stage to keep busy.
        stage = max(STAGES, key=lambda stage: (_busy(row, stage), stage == "gemm_ps"))
        return f"{STAGES[stage][0]} ({_percent(_busy(row, stage))})"

    largest = _largest(rows)
    streamed, loaded = largest[Staging.REF_REF], largest[Staging.LOAD_LOAD]
    return (
        f"Busiest stage of {streamed.shape}: "
        f"{busiest(streamed)} with operands streamed, {busiest(loaded)} with operands loaded"
    )


def _utilisation_finding(rows: Sequence[GemmRow]) -> str:
    largest = _largest(rows)
    streamed, loaded = largest[Staging.REF_REF], largest[Staging.LOAD_LOAD]
    # On a machine with fast memory, loading first can cost more than it saves.
    verb = "raises" if loaded.utilisation > streamed.utilisation else "lowers"
    return (
        f"{streamed.shape}: loading its operands first {verb} the utilisation of the kernel "
        f"from {_percent(streamed.utilisation)} to {_percent(loaded.utilisation)}"
    )


def _theory_finding(rows: Sequence[GemmRow]) -> str:
    nearest, farthest = min(rows, key=lambda row: row.ratio), max(rows, key=lambda row: row.ratio)
    return (
        f"{nearest.shape} {nearest.staging} is {nearest.ratio - 1:.1%} above its bound;\n"
        f"{farthest.shape} {farthest.staging}, {_steps(farthest.steps)}, "
        f"takes {farthest.ratio:.1f} times its bound"
    )


def _steps(count: int) -> str:
    return "a single step" if count == 1 else f"{count:,} steps"


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _time(ps: int) -> str:
    number, unit = (ps / 1e6, "us") if ps >= 1e6 else (ps / 1e3, "ns")
    return f"{number:#.3g}".removesuffix(".") + f" {unit}"
