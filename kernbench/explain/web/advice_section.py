"""The first section of the page of a run: its kernels, losses and advice, as HTML without a script.

A heat row has a cell for each PE of a kernel, darker the longer it takes without waits for others.
The source pane has the statements on the critical path between the lines around them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape

from kernbench.explain.advice.advise import ScopeAdvice
from kernbench.explain.advice.finding import Advice, Finding
from kernbench.explain.advice.kernel_rows import KernelRows
from kernbench.explain.advice.source_text import SourceText
from kernbench.explain.web.document import html_table
from kernbench.explain.why.report import ns, percent
from kernbench.explain.why.shares import by_line, shares

_SHOWN_LOSSES = 6
_SHOWN_CHANGES = 8
_SHOWN_LINES = 12
_AROUND = 2
"""Lines of source in front of a statement, and behind it."""
_EVEN = 1.02
"""PEs whose times differ by less than this factor have no heat."""


def advice_section(advice: ScopeAdvice, total_ps: int, source: SourceText) -> str:
    """The section."""
    scope = advice.scope
    share = percent(scope.total_ps, total_ps)
    parts = [
        f"<h2>{escape(scope.title)}: {ns(scope.total_ps)} ns, {share} % of the run</h2>",
        f'<p class="note">{escape(scope.around)}</p>' if scope.around else "",
        *(_heat(kernel) for kernel in advice.kernels),
        _losses(advice.findings[:_SHOWN_LOSSES], scope.total_ps),
        _changes(advice.advice[:_SHOWN_CHANGES], scope.total_ps),
        _source(advice, source),
    ]
    return "\n".join(part for part in parts if part)


def _heat(kernel: KernelRows) -> str:
    """A row of cells, one for each PE of the longest launch of a kernel."""
    times = [each.own_ps for each in kernel.programs]
    least, most = min(times), max(times)
    span_ps = most - least if most > _EVEN * least else 0
    cells = list[str]()
    last = ""
    for each in kernel.programs:
        cube = f"sip{each.sip}.cube{each.cube}"
        begins = ' class="cube"' if last and cube != last else ""
        last = cube
        heat = (each.own_ps - least) / span_ps if span_ps else 0.0
        title = f"{cube}.pe{each.pe}: {ns(each.own_ps)} ns, {ns(each.time_ps)} ns with waits"
        cells.append(f'<i{begins} style="--heat:{heat:.2f}" title="{escape(title)}"></i>')
    launches = "1 launch" if kernel.launches == 1 else f"{kernel.launches:,} launches"
    ratio = f", max / mean {kernel.max_ps / kernel.mean_ps:.2f}" if kernel.mean_ps else ""
    slowest = f", slowest {kernel.slowest} with {ns(kernel.max_ps)} ns" if span_ps else ""
    return (
        f"<p><b>{escape(kernel.name)}</b> {launches}, {ns(kernel.time_ps)} ns; "
        f"{len(times):,} PEs{ratio}{escape(slowest)}</p>"
        f'<div class="heat">{"".join(cells)}</div>'
    )


def _losses(findings: Sequence[Finding], total_ps: int) -> str:
    if not findings:
        return '<p class="note">No loss of at least 0.5 %.</p>'
    rows = [
        f'<tr><td class="number">{ns(each.cost_ps)}</td>'
        f'<td class="number">{percent(each.cost_ps, total_ps)}</td>'
        f"<td><b>{escape(each.title)}</b><br>{escape(each.evidence)}"
        f"{f'<br><code>{escape(each.line)}</code>' if each.line else ''}</td></tr>"
        for each in findings
    ]
    return html_table("Losses", ("ns", "%", "loss and evidence"), rows)


def _changes(advice: Sequence[Advice], total_ps: int) -> str:
    rows = [
        f'<tr><td class="number">{ns(each.saves_ps)}</td>'
        f'<td class="number">{percent(each.saves_ps, total_ps)}</td>'
        f"<td>{'machine' if each.of_machine else 'program'}: {escape(each.text)}</td></tr>"
        for each in advice
    ]
    return html_table("Change this", ("ns saved", "%", "change"), rows) if rows else ""


def _source(advice: ScopeAdvice, source: SourceText) -> str:
    """The statements with the most time on the critical path, in their files."""
    by_file = defaultdict[str, dict[int, int]](dict)
    for share in shares(advice.pieces, by_line)[:_SHOWN_LINES]:
        file, _, number = share.name.rpartition(":")
        if file and number.isdecimal() and source.of(share.name):
            by_file[file][int(number)] = share.length_ps
    if not by_file:
        return ""
    panes = [_pane(file, times, source) for file, times in by_file.items()]
    return f"<h2>Time on the critical path by line, ns</h2>{''.join(panes)}"


def _pane(file: str, times: dict[int, int], source: SourceText) -> str:
    most = max(times.values())
    rows = list[str]()
    last = 0
    for number in _around(times):
        if last and number > last + 1:
            rows.append('<tr class="gap"><td></td><td></td><td>…</td></tr>')
        last = number
        time_ps = times.get(number, 0)
        shown = ns(time_ps) if time_ps else ""
        text = escape(source.indented(f"{file}:{number}"))
        rows.append(
            f'<tr style="--heat:{time_ps / most:.2f}"><td class="number">{shown}</td>'
            f'<td class="number">{number}</td><td><pre>{text}</pre></td></tr>'
        )
    return (
        f'<p><code>{escape(file)}</code></p><div class="pane"><table class="source">'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _around(times: dict[int, int]) -> Iterator[int]:
    """The lines of the statements and those around them, each once."""
    last = 0
    for number in sorted(times):
        yield from range(max(number - _AROUND, last + 1, 1), number + _AROUND + 1)
        last = number + _AROUND
