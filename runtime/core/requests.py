"""What a host program asks of its device. Every request travels the modelled path and takes simulated time.

Host -> PCIE_EP -> IO_CPU, and from there to a memory (`MemoryWriteMsg`, `MemoryReadMsg`) or to the M_CPU of a cube and the
PEs below it (`PeDmaMsg`, `MmuMapMsg`, `IpcqInitMsg`, `KernelLaunchMsg`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

from runtime.core.coordinates import PeCoordinates


@dataclass(frozen=True)
class MemoryWriteMsg:
    """Write `nbytes` at a physical address; `data` is empty in a run without data."""

    address: int
    nbytes: int
    data: bytes


@dataclass(frozen=True)
class MemoryReadMsg:
    """Read `nbytes` at a physical address; the result is the bytes (empty in a run without data)."""

    address: int
    nbytes: int


@dataclass(frozen=True)
class PeDmaMsg:
    """Let the DMA of a PE of this SIP copy `nbytes` between its TCM and a physical address anywhere.

    `read` copies from `address` to TCM, `write` from TCM to `address`; `tcm_offset` counts from the start of the TCM. An
    address in another SIP takes a run with `remote_dma`.
    """

    cube: int
    pe: int
    operation: Literal["read", "write"]
    address: int
    nbytes: int
    tcm_offset: int = 0

    ENTRY_BYTES = 32


@dataclass(frozen=True)
class Extent:
    """A contiguous piece of a mapping: virtual [virtual, virtual + nbytes) lies at physical address `physical`."""

    virtual: int
    nbytes: int
    physical: int
    tensor: str


@dataclass(frozen=True)
class MmuMapMsg:
    """Extend the page tables of PEs of one cube: pairs of (pe, extents)."""

    cube: int
    extents: tuple[tuple[int, tuple[Extent, ...]], ...]

    ENTRY_BYTES = 24  # virtual address, physical address and length, 8 bytes each


@dataclass(frozen=True)
class QueuePair:
    """One direction of a PE's IPCQ: where arrivals land here, and where sends land at the peer.

    `peer_direction` is the direction at the peer that leads back. A pair that never receives has no `rx_base`, one that
    never sends no `tx_base`.
    """

    direction: str
    peer: PeCoordinates
    peer_direction: str
    rx_base: int | None
    tx_base: int | None
    n_slots: int
    slot_size: int
    credit_bytes: int
    packet_bytes: int

    @property
    def ring_bytes(self) -> int:
        """Bytes of one receive ring."""
        return self.n_slots * self.slot_size


@dataclass(frozen=True)
class IpcqInitMsg:
    """Install the queue table `table` on PEs of one cube: pairs of (pe, queue pairs). A PE has several tables, each once."""

    cube: int
    queues: tuple[tuple[int, tuple[QueuePair, ...]], ...]
    table: str

    ENTRY_BYTES = 32  # two ring bases, peer, geometry


@dataclass(frozen=True)
class PerPe:
    """A kernel argument that differs from PE to PE, by (cube, pe)."""

    values: Mapping[tuple[int, int], object]


HardwareThread = Literal["kernels", "collectives"]
"""The two hardware contexts of a PE. Each runs one kernel at a time, and has scratch of its own."""


@dataclass(frozen=True)
class KernelLaunchMsg:
    """Run `kernel(*arguments)` on (cube, pe) of this SIP; they start together, at a time that the IO_CPU stamps.

    `queues` is the queue table that it sends and receives through, none if empty. `call` is the collective call of which it
    is this rank's part: whoever receives from it must have made the same one. Other kernels have none. `line` is where the
    rank's program asked for it, for the texts of errors.
    """

    name: str
    kernel: Callable[..., object]
    arguments: tuple[object, ...]
    pes: tuple[tuple[int, int], ...]
    queues: str = ""
    call: str = ""
    line: str = ""

    ARGUMENT_BYTES = 8
    HEADER_BYTES = 64

    @property
    def thread(self) -> HardwareThread:
        """Which context of the PEs runs it."""
        return hardware_thread(self.call)


def hardware_thread(call: str) -> HardwareThread:
    """The part of a collective call runs beside other kernels."""
    return "collectives" if call else "kernels"


Request = MemoryWriteMsg | MemoryReadMsg | PeDmaMsg | MmuMapMsg | IpcqInitMsg | KernelLaunchMsg


@dataclass
class Handle:
    """A batch of requests on its way. Results align with the requests; times are picoseconds.

    It was submitted, as times count, when its turn came and it left the host. `kernels_ps` is the longest time that a kernel
    of the batch has run so far. What the batch has cost is known once it is `done`: until then the properties are a
    `RuntimeError`. `holds` is what must not be freed before that.
    """

    requests: tuple[Request, ...]
    submitted_ps: int
    done: bool = False
    completed_ps: int = 0
    kernels_ps: int = 0
    results: list[bytes] = field(default_factory=list[bytes])
    holds: tuple[object, ...] = ()

    @property
    def total_ps(self) -> int:
        """From leaving the host to the last completion."""
        self._check_done()
        return self.completed_ps - self.submitted_ps

    @property
    def pe_exec_ps(self) -> int:
        """The part of `total_ps` during which a kernel ran."""
        self._check_done()
        return self.kernels_ps

    @property
    def network_ps(self) -> int:
        """What of `total_ps` was not kernel execution."""
        return self.total_ps - self.pe_exec_ps

    def _check_done(self) -> None:
        if not self.done:
            raise RuntimeError(
                "the launch is still on its way: wait with torch.ahbm.synchronize(), or read what it wrote"
            )


class StreamOrder(Enum):
    """When a batch begins, and what waits for it; what it waits for is complete when it begins.

    `IN_TURN`: behind every earlier batch, but for those `OVERLAPPING` that use none of its tensors. `AFTER_ALL`: behind every
    earlier batch. `OVERLAPPING`: behind every earlier batch, too, but later ones `IN_TURN` that use none of its tensors do not
    wait for it.
    """

    COMPUTE = "compute"
    BARRIER = "barrier"
    COLLECTIVE = "collective"


class Device(Protocol):
    """The accelerator as the host program of one rank sees it."""

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        order: StreamOrder = StreamOrder.COMPUTE,
    ) -> Handle:
        """Queue a batch that uses the tensors of these names; its requests run together. Does not wait."""
        ...

    def wait(self, handle: Handle) -> Handle:
        """Let simulated time pass until the batch is complete."""
        ...

    @property
    def now_ps(self) -> int:
        """The simulated time at which the host program stands."""
        ...
