"""The figures of the study: times against bounds, and what of a time is exposed.

A title states the finding, so it is computed from the rows.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kernbench.studies import plots
from kernbench.studies.ring_attention.rows import Division, RingResults, RingRow


def times(results: RingResults) -> Figure:
    """The time against the number of SIPs for each length, and the bounds."""
    lengths, sips = results.sizes.tokens, results.sizes.sips
    figure = plots.new_figure(5.2, _times_finding(results))
    panels = figure.subplots(1, len(Division), sharey=True, squeeze=False)[0]
    for division, axes in zip(Division, panels, strict=True):
        for tokens, (colour, marker) in zip(lengths, plots.looks(len(lengths)), strict=True):
            rows = results.of(division, tokens)
            line = [row.layer_ps / 1e6 for row in rows]
            axes.plot(sips, line, marker=marker, color=colour)
            bounds = [row.bounds.bound_ps / 1e6 for row in rows]
            axes.plot(sips, bounds, "--", color=colour, linewidth=1)
        plots.log_axes(axes, sips, str)
        axes.set(xlabel="SIPs", title=division.words)
        axes.yaxis.set_minor_formatter("{x:g}")
    panels[0].set_ylabel("time of the layer (us)")
    handles = [
        plots.key(f"{tokens:,} tokens", colour, marker=marker)
        for tokens, (colour, marker) in zip(lengths, plots.looks(len(lengths)), strict=True)
    ]
    handles.append(plots.key("bound", "grey", linestyle="--", linewidth=1))
    plots.legend_below(figure, handles)
    return figure


def exposed(results: RingResults) -> Figure:
    """Kernels and exposed communication of the longest sequence, on the SIP that ends last."""
    tokens = results.sizes.tokens[-1]
    figure = plots.new_figure(5.2, _exposed_finding(results))
    panels = figure.subplots(1, len(Division), sharey=True, squeeze=False)[0]
    for division, axes in zip(Division, panels, strict=True):
        for place, row in enumerate(results.of(division, tokens)):
            kernels, waits = (row.layer_ps - row.exposed_ps) / 1e6, row.exposed_ps / 1e6
            axes.bar(place, kernels, 0.6, color=plots.ORANGE)
            axes.bar(place, waits, 0.6, bottom=kernels, color=plots.BLUE)
            share = row.exposed_ps / row.layer_ps
            axes.text(place, kernels + waits, f"{share:.0%}", ha="center", va="bottom")
            least = min(row.kernels_ps) / 1e6
            axes.plot([place - 0.36, place + 0.36], [least, least], color="black", linewidth=2)
            link = row.bounds.link_ps / 1e6
            axes.plot(
                [place - 0.36, place + 0.36], [link, link], ":", color=plots.GREY, linewidth=2
            )
        sips = results.sizes.sips
        axes.set_xticks(range(len(sips)), [f"{count} SIPs" for count in sips])
        axes.set_title(division.words)
        plots.value_grid(axes, "y")
    panels[0].set_ylabel(f"time of {tokens:,} tokens (us)")
    handles = [
        Patch(color=plots.ORANGE, label="kernels of the last SIP"),
        Patch(color=plots.BLUE, label="exposed communication and launches"),
        plots.key("kernels of the SIP with the least work", linewidth=2),
        plots.key("bound of the link", plots.GREY, linestyle=":", linewidth=2),
    ]
    plots.legend_below(figure, handles, 2)
    return figure


FIGURES: Mapping[str, Callable[[RingResults], Figure]] = {
    "ring_attention_times.png": times,
    "ring_attention_exposed.png": exposed,
}
"""The figures by the names of their files."""


def _last(results: RingResults, division: Division) -> RingRow:
    """The most tokens on the most SIPs."""
    return results.of(division, results.sizes.tokens[-1])[-1]


def _times_finding(results: RingResults) -> str:
    contiguous, zigzag = (
        _last(results, division) for division in (Division.CONTIGUOUS, Division.ZIGZAG)
    )
    return (
        f"Causal attention over {zigzag.tokens:,} tokens on {zigzag.sips} SIPs: zig-zag takes "
        f"{zigzag.layer_ps / contiguous.layer_ps:.2f} of the time of contiguous chunks"
    )


def _exposed_finding(results: RingResults) -> str:
    first, last = (
        results.of(Division.ZIGZAG, results.sizes.tokens[-1])[place] for place in (0, -1)
    )
    return (
        f"Zig-zag exposes {first.exposed_ps / first.layer_ps:.0%} of the time on {first.sips} SIPs "
        f"and {last.exposed_ps / last.layer_ps:.0%} on {last.sips}"
    )
