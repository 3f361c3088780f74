"""Follows undefined bytes through a run: from tensors and values that nothing has written, through
copies, messages and moves, to the first use that needs their value.

A copy of undefined bytes is legal: a program may copy a padded tensor whole. An error is what
computes with them, sums them, takes them as an index, or reads them on the host. What an error has
computed counts as defined, so that one missing store has one report.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kernbench.explain.check.accesses import Accessor
from kernbench.explain.check.block_tables import CallBlock
from kernbench.explain.check.geometry import RowLayout
from kernbench.explain.check.moves import moved, ranges_of, undefined_elements
from kernbench.explain.check.plain_commands import PlainCommands
from kernbench.explain.check.queues import CallId
from kernbench.explain.check.run_calls import CallRow, SipCalls
from kernbench.explain.check.selections import (
    ElementStates,
    KnownElements,
    outcome_of,
    steps_of,
)
from kernbench.explain.check.undefined_ranges import (
    UndefinedOrigin,
    UndefinedRange,
    UndefinedRanges,
)
from runtime.core.run_tables import NONE
from runtime.core.run_tables import BlockAccess as Use

_COPIES = ("load", "store")
_MOVES = frozenset({"math cat", "math trans", "math cast", "math bitcast"})


class UndefinedUse(NamedTuple):
    """A call that uses undefined bytes."""

    origin: UndefinedOrigin
    accessor: Accessor
    row: CallRow


class UndefinedNote(NamedTuple):
    """A selection that takes undefined elements or does not, by a mask that is not known."""

    origin: UndefinedOrigin
    accessor: Accessor
    row: CallRow


_Packed = list[UndefinedRange]
"""Undefined ranges among the bytes of blocks one behind the other, in the order of elements."""


class UndefinedValues:
    """Follows the calls of a replay. `uses` are the errors, `notes` what is not decided."""

    def __init__(self, sips: Sequence[SipCalls]) -> None:
        self._sips = {each.sip: each for each in sips}
        self._of_tensors: dict[tuple[int, int], UndefinedRanges] = {}
        self._of_pes: dict[tuple[int, int, int], UndefinedRanges] = {}
        self._messages: dict[CallId, _Packed] = {}
        self._known = KnownElements(self._sips)
        self.uses: list[UndefinedUse] = []
        self.notes: list[UndefinedNote] = []

    def passes(self, sip: int, command: int, commands: PlainCommands) -> bool:
        """Whether a plain command reads nothing undefined; then what it writes is defined."""
        if any(self._of_tensor(sip, each) for each in commands.reads(command)):
            return False
        for tensor, address, layout in commands.writes(command):
            ranges = self._of_tensor(sip, tensor)
            if ranges:
                for begin, end in layout.spans(address):
                    ranges.remove(begin, end)
        return True

    def used(self, accessor: Accessor, row: CallRow, blocks: Sequence[CallBlock]) -> None:
        """A call reads its blocks, and writes others."""
        # Most blocks are where nothing is undefined.
        for each in blocks:
            if each.access == Use.MAKE or self._ranges(accessor, each):
                break
        else:
            return
        reads = [each for each in blocks if each.access == Use.READ]
        writes = [each for each in blocks if each.access == Use.WRITE]
        packed = self._read(accessor, row, reads)
        if packed and not row.operation.startswith(_COPIES):
            packed = self._computed(accessor, row, reads, writes, packed)
        elif packed and not writes:
            packed = []
        self._write(accessor, writes, packed)
        for each in blocks:
            if each.access == Use.MAKE:
                origin = UndefinedOrigin(accessor.sip, NONE, row.call)
                whole = UndefinedRange(0, each.layout.nbytes, origin)
                self._write(accessor, (each,), [whole])

    def sent(self, message: CallId, accessor: Accessor, row: CallRow) -> None:
        """A call sends a value."""
        packed = self._read(accessor, row, row.blocks)
        if packed:
            self._messages[message] = packed

    def received(
        self, message: CallId, accessor: Accessor, row: CallRow, blocks: Sequence[CallBlock]
    ) -> None:
        """A call has received a message."""
        del row
        self._write(accessor, blocks, self._messages.pop(message, []))

    def _computed(
        self,
        accessor: Accessor,
        row: CallRow,
        reads: Sequence[CallBlock],
        writes: Sequence[CallBlock],
        packed: _Packed,
    ) -> _Packed:
        """The undefined elements of the result of a call that reads undefined ones."""
        operation = row.operation
        if operation.startswith("gather"):
            memory = sum(each.layout.nbytes for each in reads if each.in_memory)
            for each in packed:
                if each.begin >= memory:
                    self.uses.append(UndefinedUse(each.origin, accessor, row))
                    break
            return [each for each in packed if each.end <= memory]
        if operation == "release":
            return []
        if operation in _MOVES and len(writes) == 1:
            layouts = [each.layout for each in reads]
            return moved(operation, layouts, writes[0].layout, packed)
        if operation in ("math where", "chain") and row.form:
            return self._selected(accessor, row, reads, writes, packed)
        self.uses.append(UndefinedUse(packed[0].origin, accessor, row))
        return []

    def _selected(
        self,
        accessor: Accessor,
        row: CallRow,
        reads: Sequence[CallBlock],
        writes: Sequence[CallBlock],
        packed: _Packed,
    ) -> _Packed:
        """The undefined elements of the results of a selection, or of a chain."""
        states, before = list[ElementStates](), 0
        for each in reads:
            layout = each.layout
            behind = before + layout.nbytes
            own = [part for part in packed if part.begin < behind and before < part.end]
            undefined = undefined_elements(layout, before, own)
            elements = self._known.of(accessor, row, layout, each.address)
            states.append(ElementStates(undefined, own[0].origin if own else None, elements))
            before = behind
        steps, results = steps_of(row, reads, writes)
        values, used, noted = outcome_of(steps, results, states)
        if used is not None:
            self.uses.append(UndefinedUse(used, accessor, row))
        if noted is not None:
            self.notes.append(UndefinedNote(noted, accessor, row))
        after, before = list[UndefinedRange](), 0
        for number, block in zip(results, writes, strict=True):
            _, origin, _ = values[number]
            if origin is not None:
                item = block.layout.item_bytes
                after += ranges_of(values[number].undefined, item, origin, before)
            before += block.layout.nbytes
        return after

    def _read(self, accessor: Accessor, row: CallRow, blocks: Iterable[CallBlock]) -> _Packed:
        packed, before = list[UndefinedRange](), 0
        for block in blocks:
            ranges = self._ranges(accessor, block)
            if ranges:
                packed += self._in_block(accessor, row, block, ranges, before)
            before += block.layout.nbytes
        return packed

    def _in_block(
        self,
        accessor: Accessor,
        row: CallRow,
        block: CallBlock,
        ranges: UndefinedRanges,
        before: int,
    ) -> _Packed:
        packed, layout = list[UndefinedRange](), block.layout
        if not ranges.within(block.address, block.address + layout.span_bytes):
            return packed
        for index, (begin, end) in enumerate(layout.spans(block.address)):
            shift = before + index * layout.row_bytes - begin
            for each in ranges.within(begin, end):
                origin = each.origin
                if origin.read is None:
                    offset = self._offset(accessor.sip, block, each.begin)
                    origin = origin._replace(offset=offset, read=(accessor, row))
                packed.append(UndefinedRange(each.begin + shift, each.end + shift, origin))
        return packed

    def _write(self, accessor: Accessor, blocks: Iterable[CallBlock], packed: _Packed) -> None:
        before = 0
        for block in blocks:
            ranges, layout = self._ranges(accessor, block), block.layout
            if ranges:
                for begin, end in layout.spans(block.address):
                    ranges.remove(begin, end)
            if packed:
                for each in _placed(packed, before, layout, block.address):
                    ranges.add(each)
            before += layout.nbytes

    def _ranges(self, accessor: Accessor, block: CallBlock) -> UndefinedRanges:
        """The undefined ranges of the memory that a block is in."""
        if not block.in_memory:
            program = accessor.program
            assert program is not None, "only kernels have values"
            place = accessor.sip, program.cube, program.pe
            of_pe = self._of_pes.get(place)
            if of_pe is None:
                of_pe = self._of_pes[place] = UndefinedRanges()
            return of_pe
        return self._of_tensor(accessor.sip, block.tensor)

    def _of_tensor(self, sip: int, number: int) -> UndefinedRanges:
        ranges = self._of_tensors.get((sip, number))
        if ranges is None:
            ranges = self._of_tensors[sip, number] = UndefinedRanges()
            if number != NONE:
                calls = self._sips[sip]
                tensor = calls.tensors[number]
                origin = UndefinedOrigin(sip, number, tensor.call)
                for address, nbytes, _ in calls.shards[tensor.block]:
                    ranges.add(UndefinedRange(address, address + nbytes, origin))
        return ranges

    def _offset(self, sip: int, block: CallBlock, address: int) -> int:
        """The bytes of a tensor before an address, or of a value from its begin."""
        if not block.in_memory or block.tensor == NONE:
            return address - block.address
        return tensor_offset(self._sips[sip], block.tensor, address)


def tensor_offset(calls: SipCalls, tensor: int, address: int) -> int:
    """The bytes of a tensor before a physical address of one of its shards."""
    for begin, nbytes, offset in calls.shards[calls.tensors[tensor].block]:
        if begin <= address < begin + nbytes:
            return offset + address - begin
    return 0


def _placed(
    packed: _Packed, before: int, layout: RowLayout, address: int
) -> Iterable[UndefinedRange]:
    """The ranges of packed bytes in a block that has those from `before` on."""
    row_bytes, offsets = layout.row_bytes, layout.offsets
    for each in packed:
        begin, end = max(each.begin - before, 0), min(each.end - before, layout.nbytes)
        while begin < end:
            row, inside = divmod(begin, row_bytes)
            count = min(row_bytes - inside, end - begin)
            start = address + int(offsets[row]) + inside
            yield UndefinedRange(start, start + count, each.origin)
            begin += count
