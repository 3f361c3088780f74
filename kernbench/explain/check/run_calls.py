"""The calls of all programs of a run, from the tables of its records."""

from collections import defaultdict
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.geometry import RowLayout, layout_of
from kernbench.explain.records import Columns, RunRecords
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


class CallBlock(NamedTuple):
    """A block that a call uses: `tensor` is the number of its tensor, -1 for values in TCM."""

    access: int
    in_memory: bool
    address: int
    layout: RowLayout
    tensor: int


class CallRow(NamedTuple):
    """A row of the table of calls; `row` is its number there. `form` is what the name of its
    operation has behind the name: the operands of an operation, the steps of a chain.
    """

    row: int
    call: int
    operation: str
    line: str
    begin_ps: int
    end_ps: int
    awaits: int
    command: int
    queue: str
    slots: int
    depth: int
    form: str = ""


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
    block: int


class CommandRow(NamedTuple):
    """A command of a rank."""

    command: int
    stream: int
    why: str
    line: str
    begun_ps: int
    end_ps: int


def copy_of_host(call: int, number: int, command: CommandRow | None) -> CallRow:
    """The call that a command of copies stands for, which `call` has submitted."""
    line = "" if command is None else command.line
    return CallRow(NONE, call, "copy", line, 0, 0, NONE, number, "", 0, 0)


class SipCalls:
    """The calls of the programs of one SIP."""

    def __init__(self, records: RunRecords, sip: int) -> None:
        self.sip, self._records = sip, records
        self._calls = records.table(CALLS, sip)
        self._blocks = records.table(BLOCKS, sip)
        self._shards = records.table(SHARDS, sip)

    @cached_property
    def by_program(self) -> dict[int, list[CallRow]]:
        """The calls of each program, in the order of their begins."""
        calls = self._calls
        order = np.argsort(calls["call"], kind="stable")
        columns: list[list[Any]] = [order.tolist()]
        names = {text: _operation(text) for text in calls.text("operation").values}
        operations = [names[text] for text in _texts(calls, "operation", order)]
        for name in CallRow._fields[1:-1]:
            if name == "operation":
                columns.append([operation for operation, _ in operations])
            elif name in calls.numbers:
                columns.append(calls[name][order].tolist())
            else:
                columns.append(_texts(calls, name, order))
        columns.append([form for _, form in operations])
        rows = defaultdict[int, list[CallRow]](list)
        programs = calls["program"][order].tolist()
        for program, row in zip(programs, zip(*columns, strict=True), strict=True):
            rows[program].append(CallRow(*row))
        return rows

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

    @cached_property
    def submits(self) -> dict[int, int]:
        """The call of the rank program that submitted each command."""
        return {
            each.command: each.call
            for each in self.by_program.get(RANK_PROGRAM, ())
            if each.operation == "submit"
        }

    @cached_property
    def blocks(self) -> dict[int, list[CallBlock]]:
        """The blocks of each call, those that it reads first."""
        table = self._blocks
        layouts, numbers = self._layouts()
        columns = [table[name].tolist() for name in ("access", "in_memory", "address")]
        columns += [[layouts[number] for number in numbers], self._tensors_of_rows.tolist()]
        blocks = defaultdict[int, list[CallBlock]](list)
        calls = table["call"].tolist()
        for call, row in zip(calls, zip(*columns, strict=True), strict=True):
            blocks[call].append(CallBlock(*row))
        return blocks

    def _layouts(self) -> tuple[list[RowLayout], list[int]]:
        """The layouts of all blocks, and the number of that of each."""
        texts = [self._blocks.text(name) for name in ("dtype", "shape", "strides")]
        keys: Numbers = np.zeros(len(self._blocks), np.int64)
        for each in texts:
            keys = keys * max(len(each.values), 1) + each.codes
        _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
        names = ([each[row] for each in texts] for row in firsts.tolist())
        return [layout_of(*each) for each in names], numbers.tolist()

    @cached_property
    def _tensors_of_rows(self) -> Numbers:
        """The tensor of each block, -1 for one that is in none.

        Memory belongs to the latest tensor that was made in it before its command was submitted.
        """
        table, memory = self._blocks, self._records.table(MEMORY, self.sip)
        tensors: Numbers = np.full(len(table), NONE, np.int64)
        if not len(memory) or not len(table):
            return tensors
        submitted = self._submits_of_calls()[table["call"]]
        begins, blocks = self._shards["address"], self._shards["block"].astype(np.int64)
        # Of shards that follow each other at one address the later one comes behind.
        order = np.lexsort((blocks, begins))
        begins, blocks = begins[order], blocks[order]
        ends = begins + self._shards["nbytes"][order]
        keys = memory["block"].astype(np.int64) << 40 | memory["call"]
        by_key = np.argsort(keys, kind="stable")
        keys = keys[by_key]
        rows = np.flatnonzero(table["in_memory"])
        address = table["address"][rows]
        shard = np.searchsorted(begins, address, "right") - 1
        left = np.ones(len(rows), np.bool_)
        # The latest shard there may be of a tensor that was made later: then it is an earlier one.
        while left.any():
            left &= shard >= 0
            inside = left & (address < ends[shard])
            wanted = blocks[shard] << 40 | submitted[rows]
            place = np.searchsorted(keys, wanted, "right") - 1
            fits = inside & (place >= 0) & (keys[place] >> 40 == blocks[shard])
            tensors[rows[fits]] = memory["tensor"][by_key[place[fits]]]
            left &= ~fits
            shard = shard - 1
            if len(begins) == len(np.unique(begins)):
                break
        return tensors

    def _submits_of_calls(self) -> Numbers:
        """The call that submitted the command of each call, by call."""
        calls = self._calls
        submits, most = self.submits, int(calls["call"].max(initial=0)) + 1
        commands: Numbers = np.full(int(calls["program"].max(initial=0)) + 2, NONE, np.int64)
        for each in self.programs:
            if each.program < len(commands):
                commands[each.program] = submits.get(each.command, NONE)
        result: Numbers = np.full(max(most, int(self._blocks["call"].max(initial=0)) + 1), most)
        result[calls["call"]] = commands[calls["program"]]
        own = calls["program"] == RANK_PROGRAM
        result[calls["call"][own]] = calls["call"][own]
        return result


def _texts(table: Columns, name: str, order: Numbers) -> list[str]:
    texts = table.text(name)
    return [texts.values[code] for code in texts.codes[order].tolist()]


def _operation(text: str) -> tuple[str, str]:
    """The name of an operation and its form."""
    if text.startswith("math "):
        name, _, operands = text.partition("(")
        return name, operands.removesuffix(")")
    if text.startswith("chain "):
        return "chain", text.removeprefix("chain ")
    return text, ""
