"""Selects the part of a run that a report is about: launches of a kernel, a time, or a rank.

Without a selection it is the measured part of the program: from its first launch to the end of its
last one; of a program that records events, the launches between the first and the last event. So
copies and mappings before the first launch, launches that warm up and the copies of results are not
in it; a line sums them.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from kernbench.explain.advice.launches import JointLaunch, joint_launches, rank_launches
from kernbench.explain.records import RunRecords
from kernbench.explain.why.intervals import length_ps
from runtime.core.errors import UsageError, nearest
from runtime.core.run_tables import COMMANDS, NONE
from runtime.core.simtime import PS_PER_NS, format_ps

_EVENT = "an event"
"""Purpose of the command of an event."""
_TITLES = {
    "MemoryWriteMsg": ("copy to the device", "copies to the device"),
    "MemoryReadMsg": ("copy to the host", "copies to the host"),
    "PeDmaMsg": ("copy on the device", "copies on the device"),
    "MmuMapMsg": ("mapping", "mappings"),
    "KernelLaunchMsg": ("other launch", "other launches"),
}
_OTHERS = ("other command", "other commands")


@dataclass(frozen=True, kw_only=True)
class RunSelection:
    """The options of `why` that select a part of a run; times in picoseconds."""

    kernel: str | None = None
    launch: int | None = None
    time_ps: tuple[int, int] | None = None
    rank: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is selected."""
        return self == RunSelection()


@dataclass(frozen=True, kw_only=True)
class RunScope:
    """The launches of a part of a run from `begin_ps` to `end_ps`; `others` are
    the other launches of the run. With `of_launches`, launches were selected.

    `title` names it, `around` states in a line what the run did before and behind it. `launches`
    are in the order of their begins; without any, the scope is the time alone.
    """

    title: str
    around: str
    begin_ps: int
    end_ps: int
    launches: Sequence[JointLaunch]
    others: Sequence[JointLaunch] = ()
    of_launches: bool = False

    @property
    def total_ps(self) -> int:
        """The time of the scope: of selected launches, theirs and that of the gaps between them."""
        if not self.of_launches:
            return self.end_ps - self.begin_ps
        begins = np.array([each.begin_ps for each in self.launches], np.int64)
        ends = np.array([each.end_ps for each in self.launches], np.int64)
        gaps_ps = sum(after.begin_ps - before.end_ps for before, after in self.gaps())
        return length_ps((begins, ends)) + gaps_ps

    def gaps(self) -> list[tuple[JointLaunch, JointLaunch]]:
        """The pairs of launches one behind the other, where the second begins after the first has
        ended, and no other launch of the run comes between them.
        """
        begins = sorted(each.begin_ps for each in self.others)
        pairs = list[tuple[JointLaunch, JointLaunch]]()
        last: JointLaunch | None = None
        for each in self.launches:
            if last is not None and each.begin_ps > last.end_ps:
                first = bisect_left(begins, last.begin_ps)
                if first == bisect_left(begins, each.begin_ps):
                    pairs.append((last, each))
            if last is None or each.end_ps > last.end_ps:
                last = each
        return pairs


def scope_of(records: RunRecords, selection: RunSelection) -> RunScope:
    """The part of a run that is selected. Raises `UsageError` for one without contents."""
    ranks = [sip for sip in records.sips if selection.rank in (None, sip)]
    if not ranks:
        raise UsageError(
            f"why: --rank {selection.rank}: the run has the ranks 0 to {len(records.sips) - 1}"
        )
    every = joint_launches({sip: rank_launches(records, sip) for sip in ranks})
    launches, title = _chosen(every, selection)
    if selection.time_ps is not None:
        begin_ps, end_ps = _within(records, selection.time_ps)
        launches = [each for each in launches if each.begin_ps < end_ps and each.end_ps > begin_ps]
        title = f"{title}, {_ns(begin_ps)} to {_ns(end_ps)} ns"
    elif launches:
        if selection.kernel is None and selection.launch is None:
            launches = _measured(records, launches)
        begin_ps = launches[0].begin_ps
        end_ps = max(each.end_ps for each in launches)
    else:
        begin_ps, end_ps = 0, records.total_ps
    if selection.rank is not None:
        title = f"{title} of rank {selection.rank}"
    chosen = {(each.name, each.number) for each in launches}
    others = [each for each in every if (each.name, each.number) not in chosen]
    around = _around(records, (begin_ps, end_ps), launches, others)
    return RunScope(
        title=title,
        around=around,
        begin_ps=begin_ps,
        end_ps=end_ps,
        launches=launches,
        others=others,
        of_launches=selection.kernel is not None or selection.launch is not None,
    )


def parse_time(text: str) -> tuple[int, int]:
    """An interval `A..B` in nanoseconds. Raises `UsageError` for anything else."""
    begin, dots, end = text.partition("..")
    try:
        begin_ps, end_ps = (round(float(each) * PS_PER_NS) for each in (begin, end))
    except (ValueError, OverflowError):
        begin_ps = end_ps = NONE
    if not dots or not 0 <= begin_ps < end_ps:
        raise UsageError(f"why: --time {text}: expected A..B in nanoseconds, 0 <= A < B")
    return begin_ps, end_ps


def _within(records: RunRecords, time_ps: tuple[int, int]) -> tuple[int, int]:
    begin_ps, end_ps = time_ps
    if begin_ps >= records.total_ps:
        raise UsageError(
            f"why: --time: the run ends at {format_ps(records.total_ps)}, before "
            f"{format_ps(begin_ps)}"
        )
    return begin_ps, min(end_ps, records.total_ps)


def _chosen(every: Sequence[JointLaunch], selection: RunSelection) -> tuple[list[JointLaunch], str]:
    launches, title = list(every), "measured part"
    if selection.kernel is not None:
        names = sorted({each.name for each in every})
        launches = [each for each in every if each.name == selection.kernel]
        if not launches:
            launches = [each for each in every if selection.kernel in each.name]
        if not launches:
            hint = nearest(selection.kernel, names) if names else "; the run has no launch"
            raise UsageError(f"why: --kernel {selection.kernel}: no launch of it{hint}")
        title = f"kernel {', '.join(sorted({each.name for each in launches}))}"
    if selection.launch is not None:
        if not 0 <= selection.launch < len(launches):
            raise UsageError(
                f"why: --launch {selection.launch}: there are {len(launches)}, numbered from 0"
            )
        launches = [launches[selection.launch]]
        title = f"launch {selection.launch} of {launches[0].name}"
    elif selection.kernel is not None:
        title = f"{title}, {len(launches)} launch{'es' if len(launches) > 1 else ''}"
    return launches, title


def _measured(records: RunRecords, launches: Sequence[JointLaunch]) -> list[JointLaunch]:
    """The launches between the first and the last event that the program records; all of them
    where no two events enclose a launch.
    """
    begun = [
        commands["begun_ps"][commands.text("why").equal(_EVENT)]
        for commands in records.tables(COMMANDS).values()
    ]
    events = np.concatenate(begun)
    if not len(events):
        return list(launches)
    first_ps, last_ps = int(events.min()), int(events.max())
    enclosed = [each for each in launches if first_ps <= each.begin_ps and each.end_ps <= last_ps]
    return enclosed or list(launches)


def _around(
    records: RunRecords,
    scope: tuple[int, int],
    launches: Sequence[JointLaunch],
    others: Sequence[JointLaunch],
) -> str:
    """The commands before the scope and behind it, without its own launches, in a line."""
    begin_ps, end_ps = scope
    own = {(of.sip, of.command) for each in launches for of in each.of_ranks}
    before = _commands(records, (0, begin_ps), own)
    after = _commands(records, (end_ps, records.total_ps), own)
    parts = [
        f"{title} {format_ps(time_ps)}{f' ({what})' if what else ''}"
        for title, time_ps, what in (
            ("before", begin_ps, before),
            ("behind", records.total_ps - end_ps, after),
        )
        if time_ps
    ]
    between = sum(begin_ps <= each.begin_ps < end_ps for each in others)
    if between:
        parts.append(f"between: {_counted(between, _TITLES['KernelLaunchMsg'])}")
    return "; ".join(parts)


def _commands(
    records: RunRecords, interval: tuple[int, int], without: Collection[tuple[int, int]]
) -> str:
    """The commands that the IO_CPU begins in an interval, by kind: their number and time."""
    begin_ps, end_ps = interval
    counts = defaultdict[tuple[str, str], int](int)
    times = defaultdict[tuple[str, str], int](int)
    for sip, commands in records.tables(COMMANDS).items():
        kinds, begun, ends = commands.text("kind"), commands["begun_ps"], commands["end_ps"]
        for row in np.flatnonzero((begun >= begin_ps) & (begun < end_ps)).tolist():
            if (sip, commands["command"].item(row)) in without:
                continue
            title = _TITLES.get(kinds[row], _OTHERS)
            counts[title] += 1
            times[title] += max(ends.item(row) - begun.item(row), 0)
    ordered = sorted(counts, key=lambda title: (-times[title], title))
    return ", ".join(
        f"{_counted(counts[title], title)} {_ns(times[title])} ns" for title in ordered
    )


def _counted(count: int, title: tuple[str, str]) -> str:
    return f"1 {title[0]}" if count == 1 else f"{count:,} {title[1]}"


def _ns(time_ps: int) -> str:
    return f"{time_ps / PS_PER_NS:,.0f}"
