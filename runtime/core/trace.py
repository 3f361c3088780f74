"""Defines the op log: one record per operation of an engine; the digest covers them in order."""

from msgspec import Struct

IO_CHIPLET = -1
"""`cube` of a record of the IO chiplet or the host."""
NO_PE = -1
"""`pe` of a record that belongs to a cube and not to one of its PEs."""


class Operand(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A block of elements at a physical address.

    `strides` has one entry per axis, in elements; empty means row-major without gaps.
    """

    address: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()


class OpRecord(Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """One operation of one engine of one SIP.

    `engine` is the component kind (`pe_dma`, `ucie`, `io_cpu`, ...), `name` the operation.
    `start_ps` is the time at which the operation gets the engine, after any wait in its queue, and
    `end_ps` its completion. `flow` is `(source sip, target sip, sequence)` of a transfer between
    SIPs; the record of the receiver has `flow_end` set.

    An operation on data reads `inputs`, blocks or numbers, at `start_ps` and writes its result at
    `end_ps`: `nbytes` bytes at the physical `address`, elements of `dtype` in `shape` and `strides`
    as in `Operand`. `axis` is the axis of a reduction. `checksum` is the CRC-32 of the result in
    row-major order, 0 in a run without data.
    """

    engine: str
    name: str
    start_ps: int
    end_ps: int
    cube: int = IO_CHIPLET
    pe: int = NO_PE
    address: int = 0
    nbytes: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    flow: tuple[int, int, int] | None = None
    flow_end: bool = False
    inputs: tuple[Operand | float, ...] = ()
    strides: tuple[int, ...] = ()
    axis: int | None = None
    checksum: int = 0

    @property
    def track(self) -> str:
        """The component as a path: `cube3.pe0.pe_dma`, `cube3.m_cpu`, `io.io_cpu`."""
        if self.cube == IO_CHIPLET:
            return f"io.{self.engine}"
        if self.pe == NO_PE:
            return f"cube{self.cube}.{self.engine}"
        return f"cube{self.cube}.pe{self.pe}.{self.engine}"
