"""Prints the advice on a part of a run."""

from collections.abc import Iterator, Sequence

from coordinator.report.text_table import TextTable, text_columns
from kernbench.explain.advice.advise import ScopeAdvice
from kernbench.explain.advice.finding import Advice
from kernbench.explain.advice.kernel_rows import KernelRows
from kernbench.explain.advice.source_text import SourceText
from kernbench.explain.why.report import STYLE, ns, percent, signed
from kernbench.explain.why.shares import by_kind, by_line, shares
from runtime.core.simtime import format_ps

_SHOWN_LOSSES = 8
_SHOWN_LINES = 8
_SHOWN_LINKS = 6


def scope_lines(advice: ScopeAdvice, total_ps: int, source: SourceText) -> Iterator[str]:
    """The losses of the scope, what to change, and the tables that they rest on."""
    scope = advice.scope
    yield (
        f"{scope.title}: {format_ps(scope.total_ps)}, "
        f"{percent(scope.total_ps, total_ps)} % of the run"
    )
    if scope.around:
        yield f"  {scope.around}"
    yield ""
    yield from _loss_lines(advice, source)
    yield from _change_lines(advice.advice, advice.scope.total_ps)
    for kernel in advice.kernels:
        yield from _kernel_lines(kernel)
    yield from _path_lines(advice, source)
    yield from _link_lines(advice)
    yield _bound_line(advice)


def _loss_lines(advice: ScopeAdvice, source: SourceText) -> Iterator[str]:
    total_ps = advice.scope.total_ps
    if not advice.findings:
        yield "losses: none of at least 0.5 %"
        yield ""
        return
    yield "losses (ns)"
    for each in advice.findings[:_SHOWN_LOSSES]:
        yield f"  {ns(each.cost_ps)}  {percent(each.cost_ps, total_ps)} %  {each.title}"
        yield f"      {each.evidence}"
        if each.line:
            text = source.of(each.line)
            yield f"      at {each.line}{f': {text}' if text else ''}"
    yield ""


def _change_lines(advice: Sequence[Advice], total_ps: int) -> Iterator[str]:
    if not advice:
        return
    simulated = any(each.simulated_ps is not None for each in advice)
    exact = "; simulated: of the whole run" if simulated else ""
    yield f"change this (ns): saves is an estimate, of each change by itself{exact}"
    headings = ["saves", "%", *(["simulated"] if simulated else []), "<in", "<change"]
    table = TextTable(text_columns(*headings), STYLE)
    for each in advice:
        cells = [ns(each.saves_ps), percent(each.saves_ps, total_ps)]
        if simulated:
            cells.append("" if each.simulated_ps is None else signed(each.simulated_ps))
        table.row(*cells, "machine" if each.of_machine else "program", each.text)
    yield from table.lines()
    yield ""


def _kernel_lines(kernel: KernelRows) -> Iterator[str]:
    times = "1 launch" if kernel.launches == 1 else f"{kernel.launches:,} launches"
    longest = "" if kernel.launches == 1 else f", the longest {ns(kernel.longest_ps)}"
    yield f"kernel {kernel.name}: {times}, {ns(kernel.time_ps)} ns{longest}"
    if kernel.mean_ps and kernel.lost_ps:
        yield (
            f"  max / mean {kernel.max_ps / kernel.mean_ps:.2f} without waits for others: "
            f"{kernel.slowest} exceeds the mean by {ns(kernel.lost_ps)} ns"
        )
    headings = ("<PEs", "each", "own", "compute", "memory", "messages", "barriers")
    table = TextTable(text_columns(*headings), STYLE)
    for row in kernel.rows:
        name = row.name if row.pes == 1 else f"{row.pes:,} PEs"
        parts = (row.time_ps, row.own_ps, row.compute_ps, row.memory_ps, row.message_ps)
        table.row(name, *map(ns, (*parts, row.barrier_ps)))
    yield from table.lines()
    yield ""


def _path_lines(advice: ScopeAdvice, source: SourceText) -> Iterator[str]:
    path_ps = sum(piece.length_ps for piece in advice.pieces)
    for title, key in (("kind", by_kind), ("source line", by_line)):
        is_line = title == "source line"
        heading = [f"<on the critical path, by {title}", "ns", "%", *(["<text"] if is_line else [])]
        table = TextTable(text_columns(*heading), STYLE)
        for share in shares(advice.pieces, key)[:_SHOWN_LINES]:
            text = [source.of(share.name)] if is_line else []
            table.row(share.name, ns(share.length_ps), percent(share.length_ps, path_ps), *text)
        yield from table.lines()
        yield ""


def _link_lines(advice: ScopeAdvice) -> Iterator[str]:
    if not advice.links:
        return
    headings = ("<busiest link or memory", "busy %", "GB/s", "peak GB/s", "queued", "bytes")
    table = TextTable(text_columns(*headings), STYLE)
    span_ps = max(advice.scope.end_ps - advice.scope.begin_ps, 1)
    for load, peak_gbs in advice.links[:_SHOWN_LINKS]:
        table.row(
            load.title,
            percent(load.busy_ps, span_ps),
            f"{load.nbytes * 1000 / span_ps:.1f}",
            f"{peak_gbs:g}",
            ns(load.queued_ps),
            f"{load.nbytes:,}",
        )
    yield from table.lines()
    yield ""


def _bound_line(advice: ScopeAdvice) -> str:
    total_ps, bound_ps = advice.scope.total_ps, advice.bound_ps
    return (
        f"bound: {format_ps(bound_ps)}, {percent(bound_ps, total_ps)} % of this part, "
        f"{advice.bound_name}; {format_ps(max(total_ps - bound_ps, 0))} above it"
    )
