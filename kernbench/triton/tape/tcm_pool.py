"""The TCM of a program: addresses of values from their first to their last use."""

from bisect import insort
from collections import deque

from kernbench.triton.tape.tape import TapeStorage
from runtime.core.dtypes import uint8
from runtime.language.context import KernelContext
from runtime.language.value import Value, part_of, row_major
from runtime.language.views import View

_ALIGNMENT = 64
_RELEASED = 8
"""Values released last whose memory is not used again, unless there is no other."""


class TcmPool:
    """The scratch of a kernel as a pool: first fit, the least address first.

    A command that writes over released memory waits for the operations in flight that use it, as
    every command does. So memory released last is used again last: such an operation may read it.
    """

    def __init__(self, context: KernelContext) -> None:
        self._context = context
        # (address, bytes) of what is free, in the order of addresses, never two neighbours.
        self._free: list[tuple[int, int]] = []
        self._released: deque[tuple[int, int]] = deque()
        self._in_use: dict[TapeStorage, None] = {}

    @property
    def free_bytes(self) -> int:
        """The bytes that are not in use."""
        parts = (*self._free, *self._released)
        return self._context.free_scratch_bytes + sum(nbytes for _, nbytes in parts)

    def allocate(self, storage: TapeStorage) -> Value:
        """Memory for a storage; the error of a full scratch is that of the kernel."""
        nbytes = _aligned(storage.nbytes)
        if nbytes > self.free_bytes:
            raise ValueError(self._full(storage))
        address = self._taken(nbytes)
        self._in_use[storage] = None
        # Elements that no command writes are not defined; here they are zero.
        value = self._context.placed(storage.shape, storage.dtype, address, is_zero=storage.pieces)
        storage.value = value
        return value

    def take_over(self, storage: TapeStorage, other: TapeStorage) -> Value:
        """The memory of `other`, whose last use this is."""
        value, other.value = other.value, None
        assert value is not None
        storage.value = value
        self._in_use[storage] = self._in_use.pop(other)
        return value

    def release(self, storage: TapeStorage) -> None:
        """Release the memory of a storage."""
        value = storage.value
        if value is not None:
            storage.value = None
            self._context.ended((value,))
            del self._in_use[storage]
            self._released.append((value.address, _aligned(storage.nbytes)))
            if len(self._released) > _RELEASED:
                self._give(*self._released.popleft())

    def _full(self, storage: TapeStorage) -> str:
        largest = sorted(self._in_use, key=lambda each: -each.nbytes)[:3]
        beside = ", ".join(_described(each) for each in largest) or "no value"
        free = self.free_bytes
        return (
            f"{_described(storage)} does not fit into the TCM of a kernel: {free:,} of "
            f"{free + sum(_aligned(each.nbytes) for each in self._in_use):,} bytes are free, which "
            f"hold {free // storage.dtype.itemsize:,} elements; the largest values in use are "
            f"{beside}; take smaller blocks, or fewer num_stages"
        )

    def _taken(self, nbytes: int) -> int:
        for index, (address, free) in enumerate(self._free):
            if free >= nbytes:
                self._free[index : index + 1] = (
                    [(address + nbytes, free - nbytes)] if free > nbytes else []
                )
                return address
        if nbytes > self._context.free_scratch_bytes and self._released:
            while self._released:
                self._give(*self._released.popleft())
            return self._taken(nbytes)
        # The end of the pool may be free, and what is behind it is the scratch of the kernel.
        kept = 0
        if self._free:
            address, free = self._free[-1]
            if address + free == self._end:
                kept = free
                self._free.pop()
        begin = self._context.empty((nbytes - kept,), uint8).address
        self._end = begin + nbytes - kept
        return begin - kept

    def _give(self, address: int, nbytes: int) -> None:
        insort(self._free, (address, nbytes))
        merged = list[tuple[int, int]]()
        for start, free in self._free:
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + free)
            else:
                merged.append((start, free))
        self._free = merged

    _end = -1


def _described(storage: TapeStorage) -> str:
    return f"{storage.dtype.name} {storage.shape} of {storage.nbytes:,} bytes"


def _aligned(nbytes: int) -> int:
    return -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT


def part_of_view(whole: Value, view: View) -> Value:
    """A view of a value; the value itself if it is the same."""
    if view.shape == whole.shape and not view.offset and view.strides == row_major(view.shape):
        return whole
    return part_of(whole, view)
