"""The figures of the study at headline scale: times against bounds, their parts, utilisation.

A title states the finding, so it is computed from the rows.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

from kernbench.studies import plots
from kernbench.studies.milestone_gqa_llama70b.headline_rows import HeadlineResults, HeadlineRow
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel
from kernbench.studies.study_results import sip_count

_PARTS = {
    "gemm_ps": ("GEMM engine works", plots.VERMILION),
    "vector_ps": ("vector engine works, GEMM engine does not", plots.ORANGE),
    "memory_ps": ("loads and stores only", plots.BLUE),
    "message_ps": ("messages between PEs only", plots.PURPLE),
    "other_ps": ("issue and latencies", plots.SKY),
    "idle_ps": ("waits until the last PE has ended", plots.GREY),
}
"""The parts of a time in their order: the field of `TimeParts`, its name and colour."""
_ENGINES = {
    "gemm_ps": ("GEMM engine", plots.VERMILION),
    "vector_ps": ("vector engine", plots.ORANGE),
    "memory_ps": ("HBM", plots.BLUE),
}


def times(results: HeadlineResults) -> Figure:
    """The time against tokens for each number of SIPs, and the bounds."""
    figure, panels = _panels(results, _times_finding(results))
    sips_list = results.config.sips
    looks_of = dict(zip(sips_list, plots.looks(len(sips_list)), strict=True))
    for panel, axes in panels.items():
        rows = results.of(panel)
        for sips, (colour, marker) in looks_of.items():
            line = [row for row in rows if row.n_ranks == sips]
            tokens = [row.tokens for row in line]
            axes.plot(tokens, [row.kernel_ps / 1e6 for row in line], marker=marker, color=colour)
            bounds = [row.bounds.bound_ps / 1e6 for row in line]
            axes.plot(tokens, bounds, ":", color=colour)
        plots.log_axes(axes, sorted({row.tokens for row in rows}), "{:,}".format)
        # Some panels span less than a power of ten.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("tokens in the KV cache" if panel.is_decode else "tokens of the prompt")
        if not panel.is_decode:
            axes.set_ylabel("time of the layer (us)")
    handles = [
        plots.key(sip_count(sips), colour, marker=marker)
        for sips, (colour, marker) in looks_of.items()
    ]
    handles.append(plots.key("bound", "grey", linestyle=":"))
    _legend(figure, handles)
    return figure


def parts(results: HeadlineResults) -> Figure:
    """The parts of the time of the longest sequences, for each number of SIPs."""
    figure, panels = _panels(results, _parts_finding(results))
    for panel, axes in panels.items():
        rows = _longest(results, panel)
        for place, row in enumerate(rows):
            left = 0.0
            for part, (_, colour) in _PARTS.items():
                share = getattr(row.parts, part) / row.parts.total_ps
                axes.barh(place, share, 0.75, left=left, color=colour)
                if share > 0.07:
                    plots.centred(axes, left + share / 2, place, f"{share:.0%}", 9)
                left += share
            axes.text(1.01, place, f"{row.kernel_ps / 1e6:,.1f} us", va="center", fontsize=9.5)
        axes.set_yticks(range(len(rows)), list(map(_row_label, rows)))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("share of the time of the kernel, mean over all PEs")
        axes.spines[["top", "right"]].set_visible(False)
    _legend(figure, [Patch(color=colour, label=name) for name, colour in _PARTS.values()])
    return figure


def utilisation(results: HeadlineResults) -> Figure:
    """The least time of each engine as a share of the time, for the longest sequences."""
    figure, panels = _panels(results, _utilisation_finding(results))
    for panel, axes in panels.items():
        rows = _longest(results, panel)
        for place, row in enumerate(rows):
            for offset, (engine, (_, colour)) in zip(
                (-0.27, 0, 0.27), _ENGINES.items(), strict=True
            ):
                share = getattr(row.bounds, engine) / row.kernel_ps
                axes.bar(place + offset, share, 0.25, color=colour)
                axes.text(place + offset, share + 0.015, f"{share:.0%}", ha="center", fontsize=9)
        axes.set_xticks(range(len(rows)), list(map(_row_label, rows)))
        axes.set_ylim(0, 1.05)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_ylabel("utilisation (% of the peak)")
        plots.value_grid(axes, "y")
    _legend(figure, [Patch(color=colour, label=name) for name, colour in _ENGINES.values()])
    return figure


FIGURES: Mapping[str, Callable[[HeadlineResults], Figure]] = {
    "gqa_times.png": times,
    "gqa_parts.png": parts,
    "gqa_utilisation.png": utilisation,
}
"""The figures by the names of their files."""


def _panels(results: HeadlineResults, finding: str) -> tuple[Figure, dict[AttentionPanel, Axes]]:
    figure = plots.new_figure(6.4, finding)
    grid = figure.subplots(2, 2, squeeze=False)
    panels = dict(zip(AttentionPanel, grid.flat, strict=True))
    for panel, axes in panels.items():
        rows = results.of(panel)
        users = rows[0].batch
        text = "one user" if users == 1 else f"{users} users"
        phase = "decode" if panel.is_decode else "prefill"
        axes.set_title(f"{phase}, {text}", fontsize=11)
    return figure, panels


def _legend(figure: Figure, handles: Sequence[Line2D | Patch]) -> None:
    plots.legend_below(figure, handles, 0 if len(handles) <= 5 else 3)


def _longest(results: HeadlineResults, panel: AttentionPanel) -> list[HeadlineRow]:
    """The longest row of each number of SIPs."""
    longest = {row.n_ranks: row for row in sorted(results.of(panel), key=lambda row: row.tokens)}
    return [longest[sips] for sips in sorted(longest)]


def _row_label(row: HeadlineRow) -> str:
    return f"{sip_count(row.n_ranks)}\n{row.tokens:,} tokens"


def _ends(results: HeadlineResults, panel: AttentionPanel) -> tuple[HeadlineRow, HeadlineRow]:
    """The largest number of tokens that has both the fewest and the most SIPs of the panel."""
    by_tokens = dict[int, list[HeadlineRow]]()
    for row in results.of(panel):
        by_tokens.setdefault(row.tokens, []).append(row)
    most = max(row.n_ranks - rows[0].n_ranks for rows in by_tokens.values() for row in rows)
    tokens = max(
        tokens for tokens, rows in by_tokens.items() if rows[-1].n_ranks - rows[0].n_ranks == most
    )
    return by_tokens[tokens][0], by_tokens[tokens][-1]


def _times_finding(results: HeadlineResults) -> str:
    prefill, decode = (
        _ends(results, panel)
        for panel in (AttentionPanel.SINGLE_USER_PREFILL, AttentionPanel.SINGLE_USER_DECODE)
    )
    gains = [first.kernel_ps / last.kernel_ps for first, last in (prefill, decode)]
    return (
        f"From {sip_count(prefill[0].n_ranks)} to {sip_count(prefill[1].n_ranks)}: "
        f"a prefill of {prefill[0].tokens:,} tokens becomes {gains[0]:.1f} times as fast, "
        f"a decode of {decode[0].tokens:,} {gains[1]:.1f} times"
    )


def _parts_finding(results: HeadlineResults) -> str:
    first, last = _ends(results, AttentionPanel.SINGLE_USER_DECODE)
    waits = [row.parts.idle_ps / row.parts.total_ps for row in (first, last)]
    return (
        f"Decode of {first.tokens:,} tokens: PEs wait {waits[0]:.0%} of the time on "
        f"{sip_count(first.n_ranks)} and {waits[1]:.0%} on {sip_count(last.n_ranks)}, "
        "while states combine"
    )


def _utilisation_finding(results: HeadlineResults) -> str:
    prefill, _ = _ends(results, AttentionPanel.SINGLE_USER_PREFILL)
    decode, _ = _ends(results, AttentionPanel.MULTI_USER_DECODE)
    return (
        f"On {sip_count(prefill.n_ranks)} a prefill of {prefill.tokens:,} tokens keeps the "
        f"{prefill.bounds.binds} engine {prefill.share:.0%} busy,\n"
        f"a decode of {decode.batch} users takes {decode.share:.0%} of the HBM bandwidth"
    )
