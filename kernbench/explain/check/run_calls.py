"""The calls of all programs of a run, from the tables of its records.

A run may have millions of calls. The rows of a program are made from the columns while it is
replayed, some hundreds at a time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.block_tables import BlockTables, CallBlock
from kernbench.explain.records.records import RunRecords
from runtime.core.run_tables import (
    BLOCKS,
    CALLS,
    COMMANDS,
    MEMORY,
    NONE,
    ORDERS,
    PROGRAMS,
    RANK_PROGRAM,
    SHARDS,
)

Numbers = NDArray[Any]
_AT_ONCE, _CHUNK = 4096, 512
"""Rows of a launch that are made together; of a longer one, those of a program at a time."""


ATOMIC = "atomic "
"""The begin of the name of a call that is an atomic operation: the operation follows, its `sem`."""
ORDERING = ("wait", "barrier", "send", "recv", "release", "program ", ATOMIC)
"""The begins of the names of calls that order others."""


class CallRow(NamedTuple):
    """A row of the table of calls, with its blocks, those that it reads first; `row` is its number
    there. `form` is what the name of its operation has behind the name: the operands of an
    operation, the steps of a chain.
    """

    row: int
    call: int
    operation: str
    form: str
    line: str
    begin_ps: int
    end_ps: int
    awaits: int
    command: int
    queue: str
    slots: int
    depth: int
    blocks: Sequence[CallBlock] = ()


class MessageRow(NamedTuple):
    """A call that sends or receives a message of `slots` slots in a ring of `depth` slots."""

    call: int
    queue: str
    is_send: bool
    slots: int
    depth: int


class ProgramRow(NamedTuple):
    """A kernel on a PE."""

    program: int
    cube: int
    pe: int
    kernel: str
    command: int


class TensorRow(NamedTuple):
    """A tensor of a rank."""

    tensor: int
    name: str
    line: str
    call: int
    nbytes: int
    item_bytes: int
    block: int


class CommandRow(NamedTuple):
    """A command of a rank."""

    command: int
    stream: int
    why: str
    line: str
    begun_ps: int
    end_ps: int


class SipCalls:
    """The calls of the programs of one SIP. The *place* of a call is its number in the order of
    programs, and of the begins of their calls.
    """

    def __init__(self, records: RunRecords, sip: int) -> None:
        self.sip, self._records = sip, records
        self._table = records.table(CALLS, sip)
        self._shards = records.table(SHARDS, sip)
        program, call = self._table["program"], self._table["call"]
        self._source: Numbers = np.lexsort((call, program))
        self.program: Numbers = program[self._source]
        """The program of each call, by place."""
        self.call: Numbers = call[self._source]
        """The number of each call, by place."""
        most = max((each.program for each in self.programs), default=RANK_PROGRAM)
        # As integers of one type: else each search converts all programs.
        numbers = np.arange(most + 2, dtype=self.program.dtype)
        self._ends: Numbers = np.searchsorted(self.program, numbers)
        texts = self._table.text("operation")
        self._operations = [_operation(text) for text in texts.values]
        self._codes: Numbers = texts.codes[self._source]
        self._orders = np.array(
            [each.startswith(ORDERING) for each, _ in self._operations], np.bool_
        )

    def __len__(self) -> int:
        return len(self._table)

    def programs_by_command(self) -> dict[int, list[ProgramRow]]:
        """The programs of each command."""
        programs = defaultdict[int, list[ProgramRow]](list)
        for each in sorted(self.programs):
            programs[each.command].append(each)
        return programs

    def rows(
        self, programs: Sequence[int], *, only_orders: bool = False
    ) -> list[Iterator[list[CallRow]]]:
        """The calls of each of `programs` in the order of their begins, some at a time; with
        `only_orders`, those that order others.
        """
        first, last = programs[0], programs[-1]
        begin, end = self._ends[first : last + 2 : last + 1 - first].tolist()
        if last - first == len(programs) - 1 and end - begin <= _AT_ONCE:
            # Kernels of a launch have few calls, and are made together.
            places = self._places(begin, end, only_orders=only_orders)
            rows = self._rows(places)
            ends = np.searchsorted(places, self._ends[first : last + 2]).tolist()
            return [iter((rows[one:other],)) for one, other in pairwise(ends)]
        return [
            self._parts(*self._ends[each : each + 2].tolist(), only_orders=only_orders)
            for each in programs
        ]

    def _parts(self, begin: int, end: int, *, only_orders: bool) -> Iterator[list[CallRow]]:
        for first in range(begin, end, _CHUNK):
            places = self._places(first, min(first + _CHUNK, end), only_orders=only_orders)
            if len(places):
                yield self._rows(places)

    def _places(self, begin: int, end: int, *, only_orders: bool) -> Numbers:
        places = np.arange(begin, end)
        return places[self._orders[self._codes[begin:end]]] if only_orders else places

    def row_of(self, call: int) -> tuple[int, CallRow]:
        """The program of the call with a number, and its row."""
        [place] = np.flatnonzero(self.call == call).tolist()
        return int(self.program[place]), self._rows(np.array([place]))[0]

    def messages(self) -> Iterator[MessageRow]:
        """The calls that send or receive, in the order of the table."""
        table, queues = self._table, self._table.text("queue")
        rows = np.flatnonzero(queues.matching(bool))
        sends = table.text("operation").matching(lambda text: text.startswith("send"))
        columns = [each[rows].tolist() for each in (table["call"], sends, queues.codes)]
        columns += [table[name][rows].tolist() for name in ("slots", "depth")]
        for call, is_send, queue, slots, depth in zip(*columns, strict=True):
            yield MessageRow(call, queues.values[queue], bool(is_send), slots, depth)

    @property
    def exchanges(self) -> Numbers:
        """The places of the calls that send or receive."""
        return np.flatnonzero(self._table.text("queue").matching(bool)[self._source])

    @cached_property
    def first_waits(self) -> dict[int, int]:
        """The first wait for each operation in flight."""
        awaits = self._table["awaits"]
        rows = np.flatnonzero(awaits != NONE)
        # A later entry replaces earlier ones.
        rows = rows[np.argsort(-self._table["call"][rows], kind="stable")]
        waits = self._table["call"][rows].tolist()
        return dict(zip(awaits[rows].tolist(), waits, strict=True))

    @cached_property
    def accessors(self) -> Numbers:
        """A number for each thread or command that uses memory, by place: calls of a program have
        one, those of programs of a grid one each, and each command of the host has one.
        """
        begins = [name.startswith("program ") for name, _ in self._operations] or [False]
        is_new = np.array(begins, np.bool_)[self._codes] | (self.program == RANK_PROGRAM)
        is_new[1:] |= self.program[1:] != self.program[:-1]
        return np.cumsum(is_new)

    @cached_property
    def commands_of_calls(self) -> Numbers:
        """The command that each call belongs to, by place; of a submission the submitted one."""
        most = int(self.program.max(initial=0))
        commands: Numbers = np.full(most + 1, NONE, np.int64)
        for each in self.programs:
            if each.program <= most:
                commands[each.program] = each.command
        own = self._table["command"][self._source]
        return np.where(self.program == RANK_PROGRAM, own, commands[self.program])

    @cached_property
    def blocks(self) -> BlockTables:
        """The blocks of the calls, by place."""
        records, commands = self._records, self.commands_of_calls
        is_submit = np.array([name == "submit" for name, _ in self._operations] or [False])
        places = np.flatnonzero(is_submit[self._codes])
        # Calls of no command come after all tensors.
        submits: Numbers = np.full(int(commands.max(initial=NONE)) + 2, np.iinfo(np.int32).max)
        submits[commands[places]] = self.call[places]
        of_calls = np.where(self.program == RANK_PROGRAM, self.call, submits[commands])
        blocks, memory = records.table(BLOCKS, self.sip), records.table(MEMORY, self.sip)
        return BlockTables(blocks, self._shards, memory, self.call, of_calls)

    def _rows(self, places: Numbers) -> list[CallRow]:
        return self._made(self._source[places], self.blocks.of(places))

    def _made(self, rows: Numbers, blocks: Sequence[Sequence[CallBlock]]) -> list[CallRow]:
        """The rows of the table with these numbers."""
        table, operations = self._table, self._operations
        codes: list[int] = table.text("operation").codes[rows].tolist()
        lines, queues = (table.text(name) for name in ("line", "queue"))
        numbers = {
            name: table[name][rows].tolist()
            for name in ("call", "begin_ps", "end_ps", "awaits", "command", "slots", "depth")
        }
        return list(
            map(
                CallRow,
                rows.tolist(),
                numbers["call"],
                [operations[code][0] for code in codes],
                [operations[code][1] for code in codes],
                map(lines.values.__getitem__, lines.codes[rows].tolist()),
                numbers["begin_ps"],
                numbers["end_ps"],
                numbers["awaits"],
                numbers["command"],
                map(queues.values.__getitem__, queues.codes[rows].tolist()),
                numbers["slots"],
                numbers["depth"],
                blocks,
            )
        )

    @cached_property
    def programs(self) -> list[ProgramRow]:
        """The kernels."""
        table = self._records.table(PROGRAMS, self.sip)
        kernels = table.text("kernel")
        return [
            ProgramRow(
                int(table["program"][row]),
                int(table["cube"][row]),
                int(table["pe"][row]),
                kernels[row],
                int(table["command"][row]),
            )
            for row in range(len(table))
            if table["program"][row] != RANK_PROGRAM
        ]

    @cached_property
    def commands(self) -> dict[int, CommandRow]:
        """The commands by number."""
        table = self._records.table(COMMANDS, self.sip)
        why, lines = table.text("why"), table.text("line")
        columns = [table[name].tolist() for name in ("command", "stream", "begun_ps", "end_ps")]
        return {
            number: CommandRow(number, stream, why[row], lines[row], begun_ps, end_ps)
            for row, (number, stream, begun_ps, end_ps) in enumerate(zip(*columns, strict=True))
        }

    @cached_property
    def orders(self) -> dict[int, list[tuple[int, str]]]:
        """The commands for which each command waits, with the reasons."""
        table = self._records.table(ORDERS, self.sip)
        reasons = table.text("reason")
        orders = defaultdict[int, list[tuple[int, str]]](list)
        pairs = zip(table["command"].tolist(), table["after"].tolist(), strict=True)
        for row, (command, after) in enumerate(pairs):
            orders[command].append((after, reasons[row]))
        return orders

    @cached_property
    def tensors(self) -> list[TensorRow]:
        """The tensors, in the order in which they were made."""
        table = self._records.table(MEMORY, self.sip)
        names, lines = table.text("name"), table.text("line")
        return [
            TensorRow(
                int(table["tensor"][row]),
                names[row],
                lines[row],
                int(table["call"][row]),
                int(table["nbytes"][row]),
                int(table["item_bytes"][row]),
                int(table["block"][row]),
            )
            for row in range(len(table))
        ]

    @cached_property
    def shards(self) -> dict[int, list[tuple[int, int, int]]]:
        """The physical address, bytes and offset of each shard, by block."""
        shards, table = defaultdict[int, list[tuple[int, int, int]]](list), self._shards
        for block, address, nbytes, offset in zip(
            *(table[name].tolist() for name in ("block", "address", "nbytes", "offset")),
            strict=True,
        ):
            shards[block].append((address, nbytes, offset))
        return shards


def _operation(text: str) -> tuple[str, str]:
    """The name of an operation and its form."""
    if text.startswith("math "):
        name, _, operands = text.partition("(")
        return name, operands.removesuffix(")")
    if text.startswith("chain "):
        return "chain", text.removeprefix("chain ")
    return text, ""
