"""The memory of a kernel: its scratch in TCM, and memory behind virtual addresses.

Scratch is a stack: values are allocated one behind the other, and a scope releases all of its own
at once. Allocation takes no time. A block of virtual memory may lie in several physical extents; it
becomes one DMA request for each piece that a descriptor can describe. Two PEs of a launch store to
the same bytes only in an order (`StoredRanges`).
"""

from collections.abc import Iterable
from math import prod

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.errors import PageFaultError
from runtime.core.requests import HardwareThread
from runtime.core.trace import Operand
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.rows import RowList
from runtime.language.value import Pointer, Shape, Strides, Value, row_major
from runtime.model.allocation import (
    collective_scratch_offset,
    kernel_scratch_offset,
    transfer_scratch_offset,
)
from runtime.model.topology import Topology
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.mapping.stored_ranges import StoreConflict
from sip_node.chip.mapping.strided_block import StridedBlock, is_packed, layout_of, part_of
from sip_node.chip.pe.pe import Pe
from sip_node.chip.store_order import KernelOrder, OrderedStore
from sip_node.programs.kernel_faults import KernelFaults

Transfer = tuple[Operand, Operand]
"""A block in TCM and the block of memory with the same elements, for one copy."""


def fill(value: Value, data: bytes) -> None:
    """Set the elements of a value; none in a run without data."""
    if len(data) != value.nbytes:
        return
    # A copy, since a later receive may write over a view of it.
    value.fill(np.frombuffer(bytearray(data), value.dtype.numpy).reshape(value.shape))


class KernelScratch:
    """The scratch of one hardware thread. The TCM begins at address `tcm_base`."""

    def __init__(
        self, topology: Topology, thread: HardwareThread, tcm_base: int, faults: KernelFaults
    ) -> None:
        match thread:
            case "kernels":
                offset, nbytes = kernel_scratch_offset(topology), topology.kernel_scratch_bytes
            case "collectives":
                offset = collective_scratch_offset(topology)
                nbytes = topology.collective_scratch_bytes
            case "transfers":
                # One scratch for all: a PE sends one message at a time, and a receive uses none.
                offset, nbytes = transfer_scratch_offset(topology), topology.transfer_scratch_bytes
        self._scratch, self._scratch_bytes = tcm_base + offset, nbytes
        self._used = 0
        self._faults = faults

    def used_bytes(self) -> int:
        """The bytes of the scratch in use."""
        return self._used

    def new(self, shape: Shape, dtype: DType) -> Value:
        """A value without data at the end of the scratch in use; `KernelError` when it is full."""
        # Aligned to its elements, so that a type may be read as numpy reads it.
        begin = -(-self._used // dtype.itemsize) * dtype.itemsize
        value = Value(shape, dtype, None, self._scratch + begin)
        if begin + value.nbytes > self._scratch_bytes:
            raise self._faults.error(
                f"kernel scratch is full: {self._used:,} of {self._scratch_bytes:,} bytes are in "
                f"use and {value.nbytes:,} more are needed; free values with `with tl.scratch():`"
            )
        self._used = begin + value.nbytes
        return value

    @property
    def free_bytes(self) -> int:
        """The bytes of the scratch that are not in use."""
        return self._scratch_bytes - self._used

    @property
    def begin(self) -> int:
        """The address of the scratch."""
        return self._scratch

    @property
    def end(self) -> int:
        """The address behind the scratch in use."""
        return self._scratch + self._used

    def release_from(self, address: int) -> None:
        """Release what is behind an address, which `end` has given."""
        # A stack pointer: values inside a scope are allocated behind those outside.
        self._used = address - self._scratch

    def release(self) -> None:
        """Release all scratch: the values of a program end with it."""
        self._used = 0


class KernelMemory(KernelScratch, KernelOrder):
    """The scratch of one hardware thread, its MMU, and the order of its stores."""

    def __init__(self, pe: Pe, launch: PeLaunch, faults: KernelFaults) -> None:
        chip = pe.chip
        KernelScratch.__init__(self, chip.topology, launch.thread, pe.tcm.base, faults)
        KernelOrder.__init__(self, chip.store_orders)
        self._mmu, self._stored = pe.mmu, launch.stored

    def transfers(self, block: Operand, pointer: Pointer, strides: Strides) -> list[Transfer]:
        """The copies between a block in TCM and one of memory, in the order of the elements."""
        pieces = self.translate(pointer, block.shape, strides)
        if len(pieces) == 1:
            return [(block, pieces[0])]
        if not is_packed(block):
            return self._row_by_row(block, pointer, strides)
        transfers, start = list[Transfer](), 0
        for piece in pieces:
            nbytes = layout_of(piece).nbytes
            transfers.append((part_of(block, start, nbytes), piece))
            start += nbytes
        return transfers

    def translate(self, pointer: Pointer, shape: Shape, strides: Strides) -> list[Operand]:
        """The physical blocks of a block of virtual memory, in the order of its elements.

        The block has at least one element. Inside one extent the result is one block. Raises
        `PageFaultError` for a byte that is not mapped.
        """
        # The op log writes row-major strides as (), so that equal blocks have equal records.
        gaps, nbytes, rows = (), prod(shape) * pointer.dtype.itemsize, None
        if strides != row_major(shape):
            gaps = strides
            nbytes, rows = layout_of(Operand(pointer.address, shape, pointer.dtype.name, gaps))
        if rows is None:
            pieces = self._mapped(pointer.address, nbytes)
            if len(pieces) == 1:
                return [Operand(pieces[0][0], shape, pointer.dtype.name)]
            return [_elements(address, count, pointer.dtype) for address, count in pieces]
        count = nbytes // rows.row_bytes
        # The common case: all rows and the gaps between them lie in one extent.
        whole = self._mmu.translate(pointer.address, rows.extent(nbytes))
        if whole is not None and len(whole) == 1:
            return [Operand(whole[0][0], shape, pointer.dtype.name, gaps)]
        return self._rows_in_extents(pointer, rows, count)

    def rows(self, rows: RowList, used: Iterable[UsedBlock]) -> list[Operand]:
        """The physical blocks of rows of a matrix, in the order of their list."""
        blocks = list[Operand]()
        for entry, block in enumerate(used):
            try:
                blocks += self.translate(*block)
            except PageFaultError as error:
                raise rows.fault(entry, error) from None
        return blocks

    def check_store(
        self,
        pointer: Pointer,
        blocks: Iterable[Operand],
        *,
        in_flight: bool = False,
        is_atomic: bool = False,
    ) -> OrderedStore | None:
        """Record that the kernel stores to physical blocks, those of a block at `pointer`, or
        combines them; the store, of a launch on several PEs. Raises `KernelError` where another PE
        of the launch stores, too, and nothing orders the two.
        """
        stored = self._stored
        if stored is None:
            return None
        store = self._new_store(self._faults.writer, in_flight=in_flight)
        for block in blocks:
            conflict = stored.add(block, store, is_atomic)
            if conflict is not None:
                raise self._faults.error(self._described(conflict, pointer))
        return store

    def _described(self, conflict: StoreConflict, pointer: Pointer) -> str:
        tensor, offset = self._mmu.tensor_at(pointer.address, conflict.start)
        item, nbytes = pointer.dtype.itemsize, conflict.stop - conflict.start
        first, end = offset // item, -(-(offset + nbytes) // item)
        problem = (
            f"stores to elements {first}:{end} of tensor {tensor}, and so does {conflict.writer} "
            "in the same launch; "
        )
        if self._faults.program is not None:
            return problem + "store other elements in each program (tl.program_id)"
        return problem + (
            "a kernel runs on every PE that holds a part of its tensors: store "
            "other elements on each PE (tl.program_id), give each PE a replica "
            '(DPPolicy(cube="replicate", pe="replicate")), place the tensors on one PE '
            "(DPPolicy(num_cubes=1, num_pes=1)), or order the stores (tl.barrier, a message)"
        )

    def _rows_in_extents(self, pointer: Pointer, rows: StridedBlock, count: int) -> list[Operand]:
        """The physical blocks of rows in several extents.

        Adjacent rows whose physical addresses keep the pitch are one block, since a descriptor can
        describe them: at most those of a plane. A row that crosses extents is one block for each of
        its pieces.
        """
        dtype, item = pointer.dtype, pointer.dtype.itemsize
        # `run`: the rows of the last block, to which the next row may be added.
        blocks, run = list[Operand](), 0
        for index in range(count):
            pieces = self._mapped(pointer.address + rows.row_offset(index), rows.row_bytes)
            address, last = pieces[0][0], len(blocks) - 1
            if len(pieces) > 1:
                blocks += [_elements(start, nbytes, dtype) for start, nbytes in pieces]
                run = 0
            elif run and blocks[last].address + run * rows.pitch == address:
                run += 1
                shape = (run, rows.row_bytes // item)
                strides = (rows.pitch // item, 1)
                blocks[last] = Operand(blocks[last].address, shape, dtype.name, strides)
            else:
                blocks.append(_elements(address, rows.row_bytes, dtype))
                run = 1
        return blocks

    def _row_by_row(self, block: Operand, pointer: Pointer, strides: Strides) -> list[Transfer]:
        """The copies where the block has gaps and the memory is in several pieces.

        Both are cut along their first axis, since part of a block with gaps is no block.
        """
        item, transfers = pointer.dtype.itemsize, list[Transfer]()
        for index in range(block.shape[0]):
            row = Operand(
                block.address + index * block.strides[0] * item,
                block.shape[1:],
                block.dtype,
                block.strides[1:],
            )
            transfers += self.transfers(row, pointer + index * strides[0], strides[1:])
        return transfers

    def _mapped(self, address: int, nbytes: int) -> list[tuple[int, int]]:
        pieces = self._mmu.translate(address, nbytes)
        if pieces is None:
            raise self._faults.page_fault(address, nbytes, self._mmu.nearest(address))
        return pieces


def _elements(address: int, nbytes: int, dtype: DType) -> Operand:
    return Operand(address, (nbytes // dtype.itemsize,), dtype.name)
