"""The op log: one record for every operation of every engine. A run's digest covers its records, in order."""

from msgspec import Struct

IO_CHIPLET = -1
"""`cube` of a record that happened on the IO chiplet or the host."""
NO_PE = -1
"""`pe` of a record that belongs to a cube, not to one of its PEs."""


class OpRecord(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One operation of one engine of one SIP.

    `engine` is the component kind (`pe_dma`, `ucie`, `io_cpu` ...), `name` the operation. Times are picoseconds, from
    the moment the engine is the operation's own to its completion. `address` is physical (0 where there is none). `flow` is
    `(source sip, target sip, sequence)` of a transfer between SIPs; the record at the receiver has `flow_end` set.
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

    @property
    def track(self) -> str:
        """The component as a path: `cube3.pe0.pe_dma`, `cube3.m_cpu`, `io.io_cpu`."""
        if self.cube == IO_CHIPLET:
            return f"io.{self.engine}"
        if self.pe == NO_PE:
            return f"cube{self.cube}.{self.engine}"
        return f"cube{self.cube}.pe{self.pe}.{self.engine}"
