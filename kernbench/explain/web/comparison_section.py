"""The section of a page that compares its run with another one: kernels side by side, as HTML.

Kernels are aligned by their names. A bar shows each time as a share of the longest one; the first
run is that of the page.
"""

from collections.abc import Mapping, Sequence
from html import escape

from kernbench.explain.records import RecordedRun
from kernbench.explain.web.document import html_table
from kernbench.explain.why.compare import Change, compare
from kernbench.explain.why.explanation import Explanation, explain
from kernbench.explain.why.kernel_times import KernelTime
from kernbench.explain.why.report import ns, signed

_SHOWN = 20


def comparison_section(first: RecordedRun, second: RecordedRun) -> str:
    """The section. Raises `UsageError` for a run that has failed."""
    comparison = compare(explain(first), explain(second))
    before, after = comparison.before, comparison.after
    ratio = f"{after.total_ps / before.total_ps:.3f}" if before.total_ps else "-"
    times = (
        f"A {ns(before.total_ps)} ns, B {ns(after.total_ps)} ns: "
        f"{signed(comparison.change_ps)} ns, {ratio} times as long"
    )
    return "\n".join(
        [
            f"<h2>A {escape(first.name)}, B {escape(second.name)}</h2>",
            f"<p>{times}</p>",
            _kernels(before, after),
            _changes("Kinds on the critical path", "kind", comparison.kinds),
            _changes("Statements on the critical path", "statement", comparison.lines),
        ]
    )


def _kernels(before: Explanation, after: Explanation) -> str:
    """The launches of each kernel of either run, those with the longest time first."""
    first = {each.name: each for each in before.kernels}
    second = {each.name: each for each in after.kernels}
    if not first and not second:
        return ""
    names = sorted({*first, *second}, key=lambda name: (-_longest(name, first, second), name))
    most = max(_longest(name, first, second) for name in names)
    rows = [_kernel(name, first.get(name), second.get(name), most) for name in names[:_SHOWN]]
    return html_table("Launches of each kernel, ns", ("A", "B", "B - A", "kernel"), rows)


def _longest(name: str, first: Mapping[str, KernelTime], second: Mapping[str, KernelTime]) -> int:
    return max(of[name].time_ps for of in (first, second) if name in of)


def _kernel(name: str, first: KernelTime | None, second: KernelTime | None, most: int) -> str:
    before_ps, after_ps = (each.time_ps if each else 0 for each in (first, second))
    counts = " and ".join(f"{each.launches:,}" if each else "none" for each in (first, second))
    bars = "".join(
        f'<i class="bar" style="--share:{time_ps / most if most else 0:.3f}"></i>'
        for time_ps in (before_ps, after_ps)
    )
    label = f"<b>{escape(name)}</b> launches: {counts}{bars}"
    return _row(before_ps, after_ps, label)


def _changes(title: str, heading: str, changes: Sequence[Change]) -> str:
    rows = [
        _row(each.before_ps, each.after_ps, escape(each.name))
        for each in changes[:_SHOWN]
        if each.change_ps
    ]
    return html_table(f"{title}, ns", ("A", "B", "B - A", heading), rows) if rows else ""


def _row(before_ps: int, after_ps: int, label: str) -> str:
    cells = (ns(before_ps), ns(after_ps), signed(after_ps - before_ps))
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return f"<tr>{numbers}<td>{label}</td></tr>"
