"""The launches of a run: on each rank, and those of several ranks that belong together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from kernbench.explain.records import RunRecords
from runtime.core.run_tables import COMMANDS, NONE, PROGRAMS

COLLECTIVES = "collectives"
"""The hardware thread of collectives."""


class RankLaunch(Struct, frozen=True):
    """A launch on a rank: from the begin of its first PE to the end of its last one.

    `rows` are those of its programs, `line` that of the launch in the rank program,
    `thread` the hardware thread. `begun_ps` is
    when the IO_CPU took the command, `answered_ps` when the host had the answer.
    """

    sip: int
    command: int
    name: str
    line: str
    thread: str
    rows: tuple[int, ...]
    submitted_ps: int
    begun_ps: int
    begin_ps: int
    end_ps: int
    answered_ps: int

    @property
    def time_ps(self) -> int:
        """The time of the launch."""
        return self.end_ps - self.begin_ps


class JointLaunch(Struct, frozen=True):
    """The launches of one kernel on several ranks that have the same number among its launches.

    `number` counts the launches of the kernel on a rank, from 0.
    """

    name: str
    number: int
    of_ranks: tuple[RankLaunch, ...]

    @property
    def is_collective(self) -> bool:
        """Whether the kernel is that of a collective, which the program only calls."""
        return self.of_ranks[0].thread == COLLECTIVES

    @property
    def begin_ps(self) -> int:
        """The begin of the first PE of all ranks."""
        return min(each.begin_ps for each in self.of_ranks)

    @property
    def end_ps(self) -> int:
        """The end of the last PE of all ranks."""
        return max(each.end_ps for each in self.of_ranks)

    @property
    def longest(self) -> RankLaunch:
        """The launch that takes most time, the first of several."""
        return max(self.of_ranks, key=lambda each: (each.time_ps, -each.sip))

    @property
    def time_ps(self) -> int:
        """The time of the longest launch."""
        return self.longest.time_ps


def rank_launches(records: RunRecords, sip: int) -> list[RankLaunch]:
    """The launches of a rank in the order of their begins."""
    programs, commands = records.table(PROGRAMS, sip), records.table(COMMANDS, sip)
    launched = np.flatnonzero((programs["pe"] != NONE) & (programs["command"] != NONE))
    by_command = defaultdict[int, list[int]](list)
    for row, command in zip(launched.tolist(), programs["command"][launched].tolist(), strict=True):
        by_command[command].append(row)
    row_of = {number: row for row, number in enumerate(commands["command"].tolist())}
    launches = [
        _launch(records, sip, command, rows, row_of.get(command, NONE))
        for command, rows in by_command.items()
    ]
    return sorted(launches, key=lambda each: (each.begin_ps, each.command))


def joint_launches(by_rank: Mapping[int, Sequence[RankLaunch]]) -> list[JointLaunch]:
    """The launches of all ranks, in the order of their begins."""
    together = defaultdict[tuple[str, int], list[RankLaunch]](list)
    for launches in by_rank.values():
        numbers = defaultdict[str, int](int)
        for each in launches:
            together[each.name, numbers[each.name]].append(each)
            numbers[each.name] += 1
    joint = [JointLaunch(name, number, tuple(of)) for (name, number), of in together.items()]
    return sorted(joint, key=lambda each: (each.begin_ps, each.name))


def _launch(
    records: RunRecords, sip: int, command: int, rows: Sequence[int], command_row: int
) -> RankLaunch:
    programs, commands = records.table(PROGRAMS, sip), records.table(COMMANDS, sip)
    begin_ps = min(programs["begin_ps"].item(row) for row in rows)
    end_ps = max(programs["end_ps"].item(row) for row in rows)
    submitted_ps = begun_ps = begin_ps
    answered_ps = end_ps
    if command_row != NONE:
        submitted_ps = commands["submitted_ps"].item(command_row)
        begun_ps = commands["begun_ps"].item(command_row)
        answered_ps = max(commands["end_ps"].item(command_row), end_ps)
    return RankLaunch(
        sip=sip,
        command=command,
        name=programs.text("kernel")[rows[0]],
        line=programs.text("line")[rows[0]],
        thread=programs.text("thread")[rows[0]],
        rows=tuple(rows),
        submitted_ps=submitted_ps,
        begun_ps=begun_ps,
        begin_ps=begin_ps,
        end_ps=end_ps,
        answered_ps=answered_ps,
    )
