"""What a kernel may address: its scratch in TCM, and the memories behind its virtual addresses."""

from collections.abc import Generator
from contextlib import contextmanager

from runtime.core.dtypes import DType
from runtime.core.requests import HardwareThread
from runtime.core.trace import Operand
from runtime.language.value import Pointer, Shape, Value, row_major
from runtime.model.allocation import collective_scratch_offset, kernel_scratch_offset
from runtime.model.topology import Topology
from sip_node.chip.pe.mmu import PeMmu
from sip_node.chip.strided_block import StridedBlock, is_packed, layout_of, part_of
from sip_node.programs.kernel_faults import KernelFaults

Strides = tuple[int, ...]
Transfer = tuple[Operand, Operand]
"""A block in TCM and the block of memory that it is copied from or to, of the same elements."""


class KernelMemory:
    """The scratch of one thread in the TCM that begins at physical address `tcm_base`, and its MMU."""

    def __init__(
        self,
        topology: Topology,
        thread: HardwareThread,
        tcm_base: int,
        mmu: PeMmu,
        faults: KernelFaults,
    ) -> None:
        if thread == "collectives":
            offset, self._scratch_bytes = (
                collective_scratch_offset(topology),
                topology.collective_scratch_bytes,
            )
        else:
            offset, self._scratch_bytes = (
                kernel_scratch_offset(topology),
                topology.kernel_scratch_bytes,
            )
        self._scratch = tcm_base + offset
        self._used = 0
        self._mmu, self._faults = mmu, faults

    def new(self, shape: Shape, dtype: DType) -> Value:
        """A value without data behind all others of the scratch; `KernelError` when that is full."""
        begin = -(-self._used // dtype.itemsize) * dtype.itemsize
        value = Value(shape, dtype, None, self._scratch + begin)
        if begin + value.nbytes > self._scratch_bytes:
            raise self._faults.error(
                f"kernel scratch is full: {self._used:,} of {self._scratch_bytes:,} bytes are in use and "
                f"{value.nbytes:,} more are needed; free values with `with tl.scratch():`"
            )
        self._used = begin + value.nbytes
        return value

    @contextmanager
    def scope(self) -> Generator[None]:
        """Give back at the end what was allocated inside."""
        used = self._used
        yield
        self._used = used

    def transfers(self, block: Operand, pointer: Pointer, strides: Strides) -> list[Transfer]:
        """The copies between a block in TCM and one of memory, in the order of the elements."""
        pieces = self.translate(pointer, block.shape, strides)
        if len(pieces) == 1:
            return [(block, pieces[0])]
        if not is_packed(block):
            return self._row_by_row(block, pointer, strides)
        found, done = list[Transfer](), 0
        for piece in pieces:
            nbytes = layout_of(piece).nbytes
            found.append((part_of(block, done, nbytes), piece))
            done += nbytes
        return found

    def translate(self, pointer: Pointer, shape: Shape, strides: Strides) -> list[Operand]:
        """The physical blocks of a block of memory of at least one element, in the order of its elements.

        It is one where the block is in one extent. Raises `PageFaultError` for a byte that is not mapped.
        """
        gaps = () if strides == row_major(shape) else strides
        nbytes, rows = layout_of(Operand(pointer.address, shape, pointer.dtype.name, gaps))
        if rows is None:
            pieces = self._mapped(pointer.address, nbytes)
            if len(pieces) == 1:
                return [Operand(pieces[0][0], shape, pointer.dtype.name)]
            return [_elements(address, count, pointer.dtype) for address, count in pieces]
        count = nbytes // rows.row_bytes
        whole = self._mmu.translate(pointer.address, (count - 1) * rows.pitch + rows.row_bytes)
        if whole is not None and len(whole) == 1:
            return [Operand(whole[0][0], shape, pointer.dtype.name, gaps)]
        return self._rows_in_extents(pointer, rows, count)

    def _rows_in_extents(self, pointer: Pointer, rows: StridedBlock, count: int) -> list[Operand]:
        """Rows that lie in one extent at their pitch are one block; a row that crosses extents is as many as it has pieces."""
        dtype, item = pointer.dtype, pointer.dtype.itemsize
        found, together = list[Operand](), 0
        for index in range(count):
            pieces = self._mapped(pointer.address + index * rows.pitch, rows.row_bytes)
            address = pieces[0][0]
            if len(pieces) > 1:
                found += [_elements(start, nbytes, dtype) for start, nbytes in pieces]
                together = 0
            elif together and found[-1].address + together * rows.pitch == address:
                together += 1
                shape = (together, rows.row_bytes // item)
                found[-1] = Operand(found[-1].address, shape, dtype.name, (rows.pitch // item, 1))
            else:
                found.append(_elements(address, rows.row_bytes, dtype))
                together = 1
        return found

    def _row_by_row(self, block: Operand, pointer: Pointer, strides: Strides) -> list[Transfer]:
        """A block with gaps and memory in several pieces: cut both along their first axis."""
        item, found = pointer.dtype.itemsize, list[Transfer]()
        for index in range(block.shape[0]):
            row = Operand(
                block.address + index * block.strides[0] * item,
                block.shape[1:],
                block.dtype,
                block.strides[1:],
            )
            found += self.transfers(row, pointer + index * strides[0], strides[1:])
        return found

    def _mapped(self, address: int, nbytes: int) -> list[tuple[int, int]]:
        pieces = self._mmu.translate(address, nbytes)
        if pieces is None:
            raise self._faults.page_fault(address, nbytes, self._mmu.nearest(address))
        return pieces


def _elements(address: int, nbytes: int, dtype: DType) -> Operand:
    return Operand(address, (nbytes // dtype.itemsize,), dtype.name)
