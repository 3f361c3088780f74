"""The requests of a host program to its device.

Every request passes the modelled components and takes simulated time: host, PCIE_EP, IO_CPU, then
either a memory (`MemoryWriteMsg`, `MemoryReadMsg`) or the M_CPU of a cube and its PEs (`PeDmaMsg`,
`MmuMapMsg`, `IpcqInitMsg`, `KernelLaunchMsg`). `runtime.core.device` submits and orders them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from runtime.core.coordinates import PeCoordinates
from runtime.core.program_grid import ProgramGrid


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

    @property
    def end(self) -> int:
        """The first virtual address behind the piece."""
        return self.virtual + self.nbytes


@dataclass(frozen=True)
class MmuMapMsg:
    """Extend the page tables of PEs of one cube: pairs of (pe, extents).

    Extents of a PE are in the order of rising virtual addresses, and do not overlap.
    """

    cube: int
    extents: tuple[tuple[int, tuple[Extent, ...]], ...]

    ENTRY_BYTES = 24  # virtual address, physical address and length, 8 bytes each


class QueuePair(Struct, frozen=True):
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


HardwareThread = Literal["kernels", "collectives", "transfers"]
"""The three hardware threads of a PE, each with its own scratch. The first two run one kernel at a
time; `transfers` holds any number of sends and receives.
"""


_AT = ", at "


@dataclass(frozen=True)
class Transfer:
    """One end of a message between two ranks: through the queue `direction`, with SIP `peer`.

    `elements` describes the elements and how the PEs share them. Both ends must agree in it, and in
    the `call` of their launches, which identifies the message. The elements lie at the virtual
    addresses from `begin` to `stop`. `function` was called at `line`, with `tag`.
    """

    end: Literal["send", "recv"]
    direction: str
    peer: int
    elements: str
    begin: int
    stop: int
    tag: int
    function: str
    line: str

    @property
    def part(self) -> str:
        """The elements and the line, as the notice of a posted receive names them."""
        return f"{self.elements}{_AT}{self.line}"

    def is_independent_of(self, earlier: "Transfer") -> bool:
        """Whether the order of both does not matter: they share no byte, or only read."""
        return (
            # Two reads commute, and so do accesses to disjoint bytes: all other pairs keep their
            # order.
            self.end == earlier.end == "send"
            or self.stop <= earlier.begin
            or earlier.stop <= self.begin
        )


def elements_of(part: str) -> str:
    """The `elements` of the transfer with this `part`."""
    return part.rpartition(_AT)[0]


@dataclass(frozen=True)
class KernelLaunchMsg:
    """Run `kernel(*arguments)` on PEs, pairs (cube, pe), of this SIP.

    The PEs start together, at a time that the IO_CPU puts into the launch command. `queues` is the
    queue table that the kernel sends and receives through; empty means none. `call` is the
    signature of the collective call that the kernel is this rank's part of, empty for other
    kernels: a receiver checks that its peer makes the same call. `line` is the `file:line` of the
    call in the rank program, for error messages. A kernel that sends or receives the message of a
    `transfer` has the id of the message as its `call`. With a `grid`, each PE runs its part of the
    programs; their ids are in the header of the command.
    """

    name: str
    kernel: Callable[..., object]
    arguments: tuple[object, ...]
    pes: tuple[tuple[int, int], ...]
    queues: str = ""
    call: str = ""
    line: str = ""
    transfer: Transfer | None = None
    grid: ProgramGrid | None = None

    ARGUMENT_BYTES = 8
    HEADER_BYTES = 64

    @property
    def thread(self) -> HardwareThread:
        """The hardware thread of the PEs that runs the kernel."""
        return hardware_thread(self.call, self.transfer)


def hardware_thread(call: str, transfer: object | None) -> HardwareThread:
    """The hardware thread for a kernel: collectives and transfers run beside other kernels."""
    if transfer is not None:
        return "transfers"
    return "collectives" if call else "kernels"


Request = MemoryWriteMsg | MemoryReadMsg | PeDmaMsg | MmuMapMsg | IpcqInitMsg | KernelLaunchMsg
