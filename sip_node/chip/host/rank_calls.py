"""Records the calls of a rank program that use memory or order commands, in a run with records.

A submission has the blocks that its copies read or write. A wait has a row for each command that it
waits for, also for those that are complete: that they are depends on times, and the order does not.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from runtime.core.device import Handle
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg
from runtime.core.run_tables import MEMORY, NONE, RANK_PROGRAM, SHARDS, BlockAccess
from runtime.device.rank.tensor_memory import MemoryBlock
from runtime.language.caller import program_line
from sip_node.chip.host.streams import Command
from sip_node.chip.mapping.strided_block import bytes_at
from sip_node.chip.records.kept_calls import IN_MEMORY
from sip_node.chip.records.run_recorder import RunRecorder

_PACK_TENSOR, _PACK_SHARD = MEMORY.packer.pack, SHARDS.packer.pack


class _BlockUser(NamedTuple):
    """The number of a block of memory, and of the tensor that has used it last."""

    block: int
    tensor: int


class _TensorUse:
    """The row of a tensor, but for the first and the last command that use it."""

    __slots__ = ("first", "last", "row")

    def __init__(self, row: tuple[int, ...]) -> None:
        self.row, self.first, self.last = row, NONE, NONE

    def use(self, command: int) -> None:
        """A command uses it."""
        if self.first == NONE:
            self.first = command
        self.last = command


class RankCalls:
    """Adds rows to the tables of `recorder`; `now_ps` is the simulated time."""

    def __init__(self, recorder: RunRecorder, now_ps: Callable[[], int]) -> None:
        self._recorder, self._rows, self._now_ps = recorder, recorder.calls, now_ps
        # The rows of tensors, which are complete at the end, and the latest of each block by name.
        self._tensors: list[_TensorUse] = []
        self._latest: dict[str, _TensorUse] = {}
        # By the virtual address of the block, which it keeps as long as it exists.
        self._blocks: dict[int, tuple[MemoryBlock, _BlockUser]] = {}
        self._numbers = 0
        recorder.ending = self._end

    def submitted(self, handle: Handle, line: str) -> None:
        """The program has submitted a command at `line`."""
        assert isinstance(handle, Command), "the handles of a rank are the commands of its host"
        call, latest = self._add("submit", line, handle.number), self._latest
        for name in handle.resources:
            # The order does not matter: each tensor has a row of its own.
            if isinstance(name, str) and name in latest:
                latest[name].use(handle.number)
        copies = [
            (_access_of(each), bytes_at(each.address, each.nbytes))
            for each in handle.requests
            if isinstance(each, MemoryReadMsg | MemoryWriteMsg | PeDmaMsg)
        ]
        # What is read comes first: a copy inside a tensor reads before it writes.
        for access, block in sorted(copies, key=lambda copy: copy[0]):
            self._rows.add_block(call, access, IN_MEMORY, block)

    def waited(self, commands: Iterable[int]) -> None:
        """The program has waited for commands, or seen that they are complete."""
        line = ""
        for number in commands:
            line = line or program_line()
            self._add("wait", line, number)

    def made(self, name: str, block: MemoryBlock, itemsize: int) -> None:
        """The program has made a tensor in a block of memory."""
        call, text, number = self._rows.new_call(), self._recorder.text, len(self._tensors)
        known, before = self._blocks.get(block.address, (None, _BlockUser(NONE, NONE)))
        if known is not block:
            before = _BlockUser(self._numbers, NONE)
            self._numbers += 1
            self._add_shards(before.block, block)
        self._blocks[block.address] = block, _BlockUser(before.block, number)
        row = (
            number,
            call,
            text(name),
            text(program_line()),
            self._now_ps(),
            block.address,
            block.layout.nbytes,
            itemsize,
            before.block,
            before.tensor,
        )
        self._latest[block.name] = _TensorUse(row)
        self._tensors.append(self._latest[block.name])

    def zeros(self, block: MemoryBlock) -> None:
        """The tensor in a block of memory is zero, without a write: nothing has used the memory."""
        call = self._add("zeros", program_line(), NONE)
        for shard in block.shards:
            if shard.spec.nbytes:
                part = bytes_at(shard.address, shard.spec.nbytes)
                self._rows.add_block(call, BlockAccess.WRITE, IN_MEMORY, part)

    def _end(self) -> None:
        """Add the rows of all tensors."""
        rows = b"".join(_PACK_TENSOR(*each.row, each.first, each.last) for each in self._tensors)
        self._recorder.add(MEMORY, rows)
        self._tensors.clear()

    def _add_shards(self, number: int, block: MemoryBlock) -> None:
        rows = [
            _PACK_SHARD(number, spec.cube, spec.pe, spec.offset_bytes, shard.address, spec.nbytes)
            for shard in block.shards
            for spec in (shard.spec,)
            if spec.nbytes
        ]
        self._recorder.add(SHARDS, b"".join(rows))

    def _add(self, operation: str, line: str, command: int) -> int:
        call, now_ps = self._rows.new_call(), self._now_ps()
        text = self._recorder.text
        place, of, to = text(line), text(operation), text("")
        self._rows.add(call, RANK_PROGRAM, of, place, now_ps, now_ps, NONE, command, to, 0, 0)
        return call


def _access_of(request: MemoryReadMsg | MemoryWriteMsg | PeDmaMsg) -> BlockAccess:
    """The use of the memory by a copy."""
    if isinstance(request, PeDmaMsg):
        return BlockAccess.READ if request.operation == "read" else BlockAccess.WRITE
    return BlockAccess.READ if isinstance(request, MemoryReadMsg) else BlockAccess.WRITE
