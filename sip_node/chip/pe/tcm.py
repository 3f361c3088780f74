"""The tightly coupled memory of a PE: its bytes, its port towards the fabric, and what its own engines leave in it."""

from collections.abc import Iterator
from itertools import product

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_port import MemoryPort
from sip_node.chip.strided_block import StridedBlock, is_packed, item_bytes, nbytes_of


class PeTcm:
    """The TCM of the PE at `node`. `reserve` is the calendar of its fabric-side port, as in `Server`; `base` its address.

    Bytes are read and written at the time of the call: the engine that moves them has paid for the way.
    """

    def __init__(self, chip: ChipContext, node: int) -> None:
        at = chip.graph.nodes[node]
        coordinates = PeCoordinates(chip.sip, at.cube, at.pe)
        self.server = Server(f"{coordinates}: pe_tcm", chip.topology.pe.tcm.bw_gbs)
        self.reserve = self.server.reserve
        self.base = chip.addresses.pe_tcm_addr(*coordinates, 0)
        self.memory = Memory(f"{at.name}.tcm", chip.topology.tcm_bytes, data=chip.data)
        self.port = MemoryPort(chip, node, self.memory, self.base, self._serve)

    def read(self, block: Operand) -> bytes:
        """The elements of a block in row-major order; empty in a run without data."""
        if is_packed(block):
            return self.memory.read(block.address - self.base, nbytes_of(block))
        return b"".join(
            self.memory.read_rows(offset, rows, 0, nbytes)
            for offset, rows, nbytes in self._grids(block)
        )

    def write(self, block: Operand, data: bytes | memoryview) -> None:
        """Store elements in row-major order; nothing in a run without data."""
        if not data:
            return
        if is_packed(block):
            self.memory.write(block.address - self.base, data)
            return
        done = 0
        for offset, rows, nbytes in self._grids(block):
            self.memory.write_rows(offset, rows, 0, data[done : done + nbytes])
            done += nbytes

    def _grids(self, block: Operand) -> Iterator[tuple[int, StridedBlock, int]]:
        """(offset in the memory, rows, bytes) of the planes of a block, in row-major order of the axes before them."""
        item, axes = item_bytes(block.dtype), list(zip(block.shape, block.strides, strict=True))
        if axes[-1][1] != 1:
            axes.append((1, 1))
        (rows, pitch), (columns, _) = axes[-2:]
        for index in product(*(range(length) for length, _ in axes[:-2])):
            planes_before = sum(i * stride for i, (_, stride) in zip(index, axes[:-2], strict=True))
            yield (
                block.address - self.base + planes_before * item,
                StridedBlock(columns * item, pitch * item),
                rows * columns * item,
            )

    def _serve(
        self, _offset: int, nbytes: int, head_ps: int, tail_ps: int, _writes: bool
    ) -> tuple[int, int]:
        return self.server.reserve(head_ps, tail_ps, nbytes)
