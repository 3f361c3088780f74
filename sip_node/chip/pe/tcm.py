"""The tightly coupled memory of a PE: its bytes, and its fabric-side port."""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.fabric.server import Server
from sip_node.chip.mapping.strided_block import StridedBlock, is_packed, item_bytes, nbytes_of
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_port import MemoryPort, PortTurns

if TYPE_CHECKING:
    from sip_node.chip.context import ChipContext


class PeTcm:
    """The TCM of the PE at `node`, at physical address `base`.

    `server` is the calendar of its fabric-side port: packets of the fabric and the PE's own DMA
    share its bandwidth. `read` and `write` take no time: the engine that moves the bytes has
    simulated the transfer.
    """

    def __init__(self, chip: "ChipContext", node: int) -> None:
        location = chip.graph.nodes[node]
        coordinates = PeCoordinates(chip.sip, location.cube, location.pe)
        self.server = Server(f"{coordinates}: pe_tcm", chip.topology.pe.tcm.bw_gbs)
        if chip.loads is not None:
            chip.loads.watch("port", self.server)
        self.base = chip.addresses.pe_tcm_addr(*coordinates, 0)
        self.memory = Memory(f"{location.name}.tcm", chip.topology.tcm_bytes, data=chip.data)
        # One port for all traffic of the fabric. Fetch and store port are others: an operand in
        # registers must not depend on what other PEs write here.
        turns = PortTurns(chip.engine, self.server)
        self.port = MemoryPort(chip, node, self.memory, self.base, turns)

    def read(self, block: Operand) -> bytes:
        """The elements of a block in row-major order; empty in a run without data."""
        if not block.strides or is_packed(block):
            return self.memory.read(block.address - self.base, nbytes_of(block))
        return b"".join(
            self.memory.read_rows(offset, rows, 0, nbytes)
            for offset, rows, nbytes in self._grids(block)
        )

    def write(self, block: Operand, data: bytes | memoryview) -> None:
        """Store elements in row-major order; nothing in a run without data."""
        if not data:
            return
        if not block.strides or is_packed(block):
            self.memory.write(block.address - self.base, data)
            return
        done = 0
        for offset, rows, nbytes in self._grids(block):
            self.memory.write_rows(offset, rows, 0, data[done : done + nbytes])
            done += nbytes

    def _grids(self, block: Operand) -> Iterator[tuple[int, StridedBlock, int]]:
        """(offset in the memory, rows, bytes) of every plane of a block, in row-major order.

        A plane is what the last two axes span.
        """
        item, axes = item_bytes(block.dtype), list(zip(block.shape, block.strides, strict=True))
        if axes[-1][1] != 1:
            # Rows are contiguous elements: a strided last axis is a column of rows of one element.
            axes.append((1, 1))
        (rows, pitch), (columns, _) = axes[-2:]
        for index in product(*(range(length) for length, _ in axes[:-2])):
            plane_start = sum(i * stride for i, (_, stride) in zip(index, axes[:-2], strict=True))
            yield (
                block.address - self.base + plane_start * item,
                StridedBlock(columns * item, pitch * item),
                rows * columns * item,
            )


def direct_memory(tcm: PeTcm) -> Memory | None:
    """The memory of a TCM where `write` of a block without gaps is a write of it, and no more."""
    is_direct = type(tcm).write is PeTcm.write and type(tcm.memory) is Memory
    return tcm.memory if is_direct else None
