"""The requests of a host program to its device, and the streams that order them.

Every request passes the modelled components and takes simulated time: host, PCIE_EP, IO_CPU, then
either a memory (`MemoryWriteMsg`, `MemoryReadMsg`) or the M_CPU of a cube and its PEs (`PeDmaMsg`,
`MmuMapMsg`, `IpcqInitMsg`, `KernelLaunchMsg`).

Requests are submitted in batches, the commands of a stream. The requests of a batch run together.
As in CUDA, a rank has two streams, compute and collectives; `StreamOrder` defines which earlier
commands a command waits for.
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
    """Read `nbytes` at a physical address; the result is the bytes, none in a run without data."""

    address: int
    nbytes: int


@dataclass(frozen=True)
class PeDmaMsg:
    """Copy `nbytes` between the TCM of a PE of this SIP and any physical address, by the PE's DMA.

    `read` copies from `address` to TCM, `write` from TCM to `address`; `tcm_offset` counts from the
    start of the TCM. An address in another SIP requires a run with `remote_dma`.
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
    """A contiguous piece of a mapping: [virtual, virtual + nbytes) lies at address `physical`."""

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
    """One direction of a PE's IPCQ: its own receive ring, and the receive ring of its peer.

    Arrivals are written to the ring at `rx_base`, sends to the peer's ring at `tx_base`.
    `peer_direction` is the direction of the peer that leads back to this PE. A pair that never
    receives has no `rx_base`, a pair that never sends has no `tx_base`.
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
    """Install the queue table `table` on PEs of one cube: pairs of (pe, queue pairs).

    A PE can have several tables; a table is installed once.
    """

    cube: int
    queues: tuple[tuple[int, tuple[QueuePair, ...]], ...]
    table: str

    ENTRY_BYTES = 32  # two ring bases, peer, geometry


@dataclass(frozen=True)
class PerPe:
    """A kernel argument that differs from PE to PE, by (cube, pe)."""

    values: Mapping[tuple[int, int], object]


HardwareThread = Literal["kernels", "collectives"]
"""The two hardware threads of a PE. Each runs one kernel at a time and has its own scratch."""


@dataclass(frozen=True)
class KernelLaunchMsg:
    """Run `kernel(*arguments)` on PEs, pairs (cube, pe), of this SIP.

    The PEs start together, at a time that the IO_CPU puts into the launch command. `queues` is the
    queue table that the kernel sends and receives through; empty means none. `call` is the
    signature of the collective call that the kernel is this rank's part of, empty for other
    kernels: a receiver checks that its peer makes the same call. `line` is the `file:line` of the
    call in the rank program, for error messages.
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
        """The hardware thread of the PEs that runs the kernel."""
        return hardware_thread(self.call)


def hardware_thread(call: str) -> HardwareThread:
    """The hardware thread for a kernel: collectives have their own, beside other kernels."""
    return "collectives" if call else "kernels"


Request = MemoryWriteMsg | MemoryReadMsg | PeDmaMsg | MmuMapMsg | IpcqInitMsg | KernelLaunchMsg


@dataclass
class Handle:
    """A batch of requests on a stream; `results` align with `requests`, times are picoseconds.

    `submitted_ps` is the time at which the batch left the host, after the commands it waited for.
    `kernels_ps` is the longest time that a kernel of the batch has run so far. The properties raise
    `RuntimeError` until the batch is `done`. `holds` are objects that must live until then, such as
    tensors whose memory the batch uses.
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
        """`total_ps` without kernel execution."""
        return self.total_ps - self.pe_exec_ps

    def _check_done(self) -> None:
        if not self.done:
            raise RuntimeError(
                "the launch is not complete: wait with torch.ahbm.synchronize(), "
                "or read a tensor that it writes"
            )


class StreamOrder(Enum):
    """The stream of a batch, and which earlier batches must be complete before it begins.

    Two streams, as in CUDA: compute and collectives. Work in a stream is serial. Across streams:

    `COMPUTE` (compute stream) waits for an earlier `COLLECTIVE` only if both use a common tensor.
    `COLLECTIVE` (collectives stream, `async_op=True`) waits for all earlier batches.
    `BARRIER` (collectives stream) waits for all earlier batches, and all later ones wait for it.
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
        """Enqueue a batch that uses the tensors of these names; does not wait.

        `why` describes the batch in error messages.
        """
        ...

    def wait(self, handle: Handle) -> Handle:
        """Suspend the host program until the batch is complete in simulated time."""
        ...

    @property
    def now_ps(self) -> int:
        """The simulated time of the host program."""
        ...
