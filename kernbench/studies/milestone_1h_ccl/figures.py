"""The figures of the study. A title states the finding, so it is computed from the rows."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from kernbench.studies import plots
from kernbench.studies.milestone_1h_ccl.reference_figure import reference
from kernbench.studies.milestone_1h_ccl.rows import CclResults, CclRow
from kernbench.studies.milestone_1h_ccl.topology_figure import topologies

ALGORITHMS = {"ring": (plots.BLUE, "o"), "intercube": (plots.VERMILION, "s")}
KINDS = {"tcm": plots.BLUE, "hbm": plots.ORANGE, "sram": plots.GREEN}
"""Queue memories with their colours."""
_FINDING_BYTES = 65_536


def latency(results: CclResults) -> Figure:
    """Time against size for each SIP topology: measured, and by the closed forms."""
    rows = results.of("size")
    figure = plots.new_figure(9.4, _latency_finding(rows))
    # An odd number of networks leaves a panel empty.
    count = len(results.networks)
    for network, axes in zip(results.networks, plots.panels_of(figure, count, 2), strict=True):
        for algorithm in ALGORITHMS:
            of_line = network, algorithm
            line = [row for row in rows if (row.network, row.algorithm) == of_line]
            _latency_lines(axes, algorithm, line)
        axes.set_title(f"{network}: {network.sips} SIPs", fontsize=11)
        plots.size_axis(axes, sorted({row.nbytes for row in rows}))
        # The times are within a factor of ten: a power of ten alone is no scale.
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter("{x:g}")
        # Room for the ratio at the last point.
        axes.margins(y=0.1)
        axes.set_ylabel("time of the all-reduce (us)")
        axes.set_xlabel("bytes a PE")
        axes.label_outer()
    plots.legend_below(figure, _latency_legend(), 3)
    return figure


def buffers(results: CclResults) -> Figure:
    """The ring with its queues in each memory: its time, and the times of one slot."""
    rows = results.of("kind")
    figure = plots.new_figure(6.4, _buffer_finding(rows))
    times, slots = figure.subplots(1, 2, width_ratios=(1.5, 1))
    _buffer_bars(times, rows)
    _slot_bars(slots, [row for row in rows if row.nbytes == max(row.nbytes for row in rows)])
    times.legend(loc="upper left", ncols=3, frameon=False)
    figure.supxlabel(
        "In TCM a message is used in its slots. Out of HBM and SRAM slots are copied one by one;\n"
        "if a copy takes longer than the link for the next slot, they queue up. "
        "HBM: the channels of the slice. SRAM: the mesh and a narrow link.",
        fontsize=10,
    )
    return figure


FIGURES: Mapping[str, Callable[[CclResults], Figure]] = {
    "ccl_latency.png": latency,
    "ccl_buffers.png": buffers,
    "ccl_topologies.png": topologies,
    "ccl_reference.png": reference,
}
"""The figures by the names of their files."""


def _latency_lines(axes: Axes, algorithm: str, rows: Sequence[CclRow]) -> None:
    colour, marker = ALGORITHMS[algorithm]
    sizes = [row.nbytes for row in rows]
    forms = [row.alpha_beta_ps / 1e6 for row in rows]
    axes.plot(sizes, forms, "--", linewidth=1.2, color=colour)
    # The black line: the closed form with all terms, where there is one.
    explained = [(row.nbytes, row.parts.total_ps / 1e6) for row in rows if row.parts is not None]
    if explained:
        axes.plot(*zip(*explained, strict=True), color="black", linewidth=1)
    axes.plot(sizes, [row.time_ps / 1e6 for row in rows], marker, color=colour, markersize=7)
    if rows:
        last = rows[-1]
        axes.annotate(
            f"{last.ratio:.2f} x",
            (last.nbytes, last.time_ps / 1e6),
            (-8, 4),
            textcoords="offset points",
            ha="right",
            fontsize=9.5,
        )


def _latency_legend() -> list[Line2D]:
    point = {"linestyle": "", "markersize": 7}
    marks = [
        plots.key(f"{name}, measured", colour, marker=marker, **point)
        for name, (colour, marker) in ALGORITHMS.items()
    ]
    lines = [
        plots.key(f"{name}, alpha-beta", colour, linestyle="--")
        for name, (colour, _) in ALGORITHMS.items()
    ]
    with_rest = plots.key("ring, by the recurrence of its pipeline", linewidth=1)
    return [*marks, *lines, with_rest, plots.key("1.00 x: measured over alpha-beta", linestyle="")]


def _latency_finding(rows: Sequence[CclRow]) -> str:
    ring = [row for row in rows if row.algorithm == "ring" and row.network == rows[0].network]
    small, large = min(ring, key=lambda row: row.nbytes), max(ring, key=lambda row: row.nbytes)
    explained = max(
        abs(row.time_ps / row.parts.total_ps - 1) for row in rows if row.parts is not None
    )
    first = (
        f"{plots.size_label(small.nbytes)} over {small.network} take {small.ratio:.2f} times "
        "the alpha-beta form"
    )
    rest = f"the recurrence of its pipeline explains the ring within {explained:.1%}"
    return f"{first}, {plots.size_label(large.nbytes)} {large.ratio:.2f} times;\n{rest}"


def _buffer_bars(axes: Axes, rows: Sequence[CclRow]) -> None:
    sizes = sorted({row.nbytes for row in rows})
    # Relative to TCM, the fastest memory: absolute times would hide the differences at 1 KiB.
    least = {row.nbytes: row.time_ps for row in rows if row.buffer_kind == "tcm"}
    for number, (kind, colour) in enumerate(KINDS.items()):
        of_kind = [row for row in rows if row.buffer_kind == kind]
        lefts = [sizes.index(row.nbytes) + (number - 1) * 0.27 for row in of_kind]
        heights = [row.time_ps / least[row.nbytes] for row in of_kind]
        axes.bar(lefts, heights, 0.25, color=colour, label=f"queues in {kind}")
        for x, height, row in zip(lefts, heights, of_kind, strict=True):
            axes.text(x, height + 0.01, f"{row.time_ps / 1e6:.2f}", ha="center", fontsize=9)
    axes.set_xticks(range(len(sizes)), [plots.size_label(nbytes) for nbytes in sizes])
    axes.set_ylim(0, 1.2 * max(row.time_ps / least[row.nbytes] for row in rows))
    axes.set_xlabel("bytes a PE")
    axes.set_ylabel("time / time with queues in TCM (time in us above the bars)")
    plots.value_grid(axes, "y")


def _slot_bars(axes: Axes, rows: Sequence[CclRow]) -> None:
    for row in rows:
        for index, ps in enumerate((row.slot_in_ps, row.slot_out_ps)):
            x = index + (list(KINDS).index(row.buffer_kind) - 1) * 0.27
            axes.bar(x, ps / 1000, 0.25, color=KINDS[row.buffer_kind])
            axes.text(x, ps / 1000, f"{ps / 1000:.0f}", ha="center", va="bottom", fontsize=9)
    first = rows[0]
    # 1 GB/s is one byte per ns.
    next_ns = first.slot_bytes / first.link_gbs
    axes.hlines(next_ns, 0.55, 1.45, color="black", linestyle="--")
    axes.annotate(
        f"the link delivers the next slot\nafter {next_ns:.0f} ns",
        (0.62, next_ns),
        (1, 3.2 * next_ns),
        ha="center",
        arrowprops={"arrowstyle": "-", "shrinkB": 0},
    )
    axes.set_xticks(
        (0, 1), ("in: sender's DMA\nto announcement", "out: receiver's DMA\nto its scratch")
    )
    axes.set_ylabel(f"median time of a slot of {first.slot_bytes} B (ns)")
    plots.value_grid(axes, "y")


def _buffer_finding(rows: Sequence[CclRow]) -> str:
    """The order of the memories at `_FINDING_BYTES`, or at the largest size if that is missing."""
    nbytes = (
        _FINDING_BYTES
        if any(row.nbytes == _FINDING_BYTES for row in rows)
        else max(row.nbytes for row in rows)
    )
    fastest_first = sorted(
        (row for row in rows if row.nbytes == nbytes), key=lambda row: row.time_ps
    )
    order = " < ".join(f"{row.buffer_kind} {row.time_ps / 1e6:.2f} us" for row in fastest_first)
    # A receive copies slots one after the other, so the time of a copy decides; the title reports
    # where it does not, for example on another topology file.
    by_copies = fastest_first == sorted(fastest_first, key=lambda row: row.slot_out_ps)
    remark = "as the copies of a slot" if by_copies else "not as the copies of a slot"
    return f"{plots.size_label(nbytes)} a PE, ring over {rows[0].network}: {order}, {remark}"
