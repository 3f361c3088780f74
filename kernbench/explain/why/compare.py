"""Compares two runs by parts of the ranks' time, and by kinds, lines, components of their paths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coordinator.report.text_table import TextTable, text_columns
from kernbench.explain.why.explanation import Explanation
from kernbench.explain.why.report import SHOWN, STYLE, ns, signed
from kernbench.explain.why.shares import by_component, by_kind, by_line, shares
from runtime.core.simtime import format_ps


@dataclass(frozen=True)
class Change:
    """A time of the same name in two runs."""

    name: str
    before_ps: int
    after_ps: int

    @property
    def change_ps(self) -> int:
        """The difference, negative where the second run took less."""
        return self.after_ps - self.before_ps


@dataclass(frozen=True)
class RunComparison:
    """Two runs: the changes of their parts, kinds, lines and components, the largest first.

    Parts are means over the ranks. Kinds, lines and components are those of the critical paths, so
    the changes of each of the three lists sum to `change_ps`.
    """

    before: Explanation
    after: Explanation
    parts: Sequence[Change]
    kinds: Sequence[Change]
    lines: Sequence[Change]
    components: Sequence[Change]

    @property
    def change_ps(self) -> int:
        """The difference of the times of the runs."""
        return self.after.total_ps - self.before.total_ps


def compare(before: Explanation, after: Explanation) -> RunComparison:
    """The changes from one run to another."""
    by_key = [
        changes(
            *(
                {share.name: share.length_ps for share in shares(run.path.pieces, key)}
                for run in (before, after)
            )
        )
        for key in (by_kind, by_line, by_component)
    ]
    parts = changes(_parts(before), _parts(after))
    return RunComparison(before, after, parts, *by_key)


def changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[Change]:
    """The changes of all names, the largest first; of equal ones by name."""
    names = {*before, *after}
    changed = [Change(name, before.get(name, 0), after.get(name, 0)) for name in names]
    return sorted(changed, key=lambda each: (-abs(each.change_ps), each.name))


def comparison_lines(comparison: RunComparison) -> Iterator[str]:
    """The tables of a comparison."""
    before, after = comparison.before, comparison.after
    yield f"# why {before.records.name} {after.records.name}"
    ratio = after.total_ps / before.total_ps if before.total_ps else 1.0
    yield (
        f"# {format_ps(before.total_ps)} -> {format_ps(after.total_ps)}: "
        f"{signed(comparison.change_ps)} ns, {ratio:.3f} times as long"
    )
    yield ""
    for title, rows in (
        ("part of a rank's time, mean", comparison.parts),
        ("kind on the critical path", comparison.kinds),
        ("source line on the critical path", comparison.lines),
        ("component on the critical path", comparison.components),
    ):
        table = TextTable(text_columns(f"<{title}", "before", "after", "change (ns)"), STYLE)
        for each in rows[:SHOWN]:
            table.row(each.name, ns(each.before_ps), ns(each.after_ps), signed(each.change_ps))
        yield from table.lines()
        yield ""


def _parts(explanation: Explanation) -> dict[str, int]:
    return {part.title: time for part, time in explanation.mean_parts_ps.items()}
