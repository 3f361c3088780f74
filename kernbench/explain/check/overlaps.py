"""The accesses that may be in a race: those to a tensor by commands without an order, or by several
threads of one command, as far as their extents overlap and one of them writes.

They are selected in columns, without a look at each access. Most programs have none.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.clocks import CommandClocks, done_of
from kernbench.explain.check.geometry import RowLayout
from kernbench.explain.check.run_calls import SipCalls
from runtime.core.run_tables import NONE

Numbers = NDArray[Any]
_Use = tuple[int, int]
"""A tensor, and a command that uses it."""


def overlaps(calls: SipCalls, begun: CommandClocks) -> set[_Use]:
    """The uses of tensors of a SIP that may be in a race; `begun` are the clocks of commands, in
    the order of their begins in a replay.
    """
    memory = calls.blocks.memory
    command = calls.commands_of_calls[memory.place]
    written = np.unique(memory.tensor[memory.writes & (command != NONE)])
    rows = np.flatnonzero((command != NONE) & np.isin(memory.tensor, written))
    if not len(rows):
        return set()
    tensor, command = memory.tensor[rows].astype(np.int64), command[rows]
    uses, use_of_row = np.unique(np.stack([tensor, command]), axis=1, return_inverse=True)
    pairs = [(one, other) for one, other in uses.T.tolist()]
    groups = _groups(pairs, calls.sip, begun)
    group = np.array([groups.get(each, NONE) for each in pairs], np.int64)[use_of_row.reshape(-1)]
    accessor, begin = calls.accessors[memory.place[rows]], memory.begin[rows]
    writes, layout = memory.writes[rows], memory.layout[rows]
    spans: Numbers = np.array([each.span_bytes for each in memory.layouts], np.int64)
    wide = _overlapping(group, accessor, begin, begin + spans[layout], writes)
    exact = set[int]()
    for number in sorted(wide):
        own = np.flatnonzero(group == number)
        blocks = _BlockRows(accessor[own], begin[own], layout[own], memory.layouts)
        if not blocks.are_apart():
            exact.add(number)
    return {each for each, number in groups.items() if number in exact}


class _BlockRows(NamedTuple):
    """Blocks of accessors, with the numbers of their layouts."""

    accessor: Numbers
    begin: Numbers
    layout: Numbers
    layouts: list[RowLayout]

    def are_apart(self) -> bool:
        """Whether no row of a block overlaps another row, but for equal ones of one accessor."""
        distinct = np.unique(np.stack([self.layout, self.begin, self.accessor]), axis=1)
        begins, ends = list[Numbers](), list[Numbers]()
        numbers: list[int] = np.unique(distinct[0]).tolist()
        for number in numbers:
            layout: RowLayout = self.layouts[number]
            own = distinct[:, distinct[0] == number]
            rows: Numbers = (own[1][:, None] + layout.offsets).reshape(-1)
            begins.append(rows)
            ends.append(rows + layout.row_bytes)
        begin, end = np.concatenate(begins), np.concatenate(ends)
        order = np.argsort(begin, kind="stable")
        return bool((begin[order][1:] >= np.maximum.accumulate(end[order])[:-1]).all())


def _groups(uses: Iterable[_Use], sip: int, begun: CommandClocks) -> dict[_Use, int]:
    """The number of a group for each use: commands that are not ordered with each other, directly
    or through others of the group, share one.
    """
    order = {command: place for place, (of, command) in enumerate(begun) if of == sip}
    by_tensor = defaultdict[int, list[int]](list)
    for tensor, command in uses:
        if command in order:
            by_tensor[tensor].append(command)
    groups, numbers = dict[_Use, int](), 0
    for tensor, commands in by_tensor.items():
        earlier = 0
        members = dict[int, list[int]]()
        # In the order of the replay, each command with those before it that it does not wait for.
        for command in sorted(commands, key=order.__getitem__):
            groups[tensor, command], members[numbers] = numbers, [command]
            loose = done_of(begun[sip, command], sip).without(earlier)
            while loose:
                other = loose.bit_length() - 1
                loose ^= 1 << other
                number = groups[tensor, other]
                if number != numbers:
                    for each in members[number]:
                        groups[tensor, each] = numbers
                    members[numbers] += members.pop(number)
            earlier |= 1 << command
            numbers += 1
    return groups


def _overlapping(
    group: Numbers, accessor: Numbers, begin: Numbers, end: Numbers, writes: Numbers
) -> set[int]:
    """The groups in which the extents of two accessors overlap, of which one writes."""
    order = np.lexsort((accessor, group))
    group, accessor = group[order], accessor[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (group[1:] != group[:-1]) | (accessor[1:] != accessor[:-1])
    firsts = np.flatnonzero(is_first)
    begins = np.minimum.reduceat(begin[order], firsts)
    ends = np.maximum.reduceat(end[order], firsts)
    written = np.logical_or.reduceat(writes[order], firsts)
    by_begin = np.lexsort((begins, group[firsts]))
    columns = (group[firsts], begins, ends, written)
    wide, current, farthest, farthest_written = set[int](), NONE, 0, 0
    for number, first, last, is_written in zip(
        *(each[by_begin].tolist() for each in columns), strict=True
    ):
        if number != current:
            current, farthest, farthest_written = number, 0, 0
        if first < farthest_written or (is_written and first < farthest):
            wide.add(number)
        farthest = max(farthest, last)
        farthest_written = max(farthest_written, last if is_written else 0)
    wide.discard(NONE)
    return wide
