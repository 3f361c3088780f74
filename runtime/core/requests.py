"""The requests of a host program to its device, and the streams that order them.

Every request passes the modelled components and takes simulated time: host, PCIE_EP, IO_CPU, then
either a memory (`MemoryWriteMsg`, `MemoryReadMsg`) or the M_CPU of a cube and its PEs (`PeDmaMsg`,
`MmuMapMsg`, `IpcqInitMsg`, `KernelLaunchMsg`).

Requests that are submitted together are a command of a stream; the requests of a command run side
by side. A command is sent to the IO_CPU at once and waits there until these are complete:

1. the command before it in its stream;
2. commands that its stream was ordered to wait for (an event, another stream, a collective);
3. of every other stream, the latest earlier command that uses one of its tensors;
4. for a launch, earlier launches in the same hardware thread of one of its PEs.

A transfer is in a stream of its own. Rule 3 does not order two transfers that share no byte or only
send, nor a read after a send; rule 4 does not order transfers. A command waits only for what
is earlier in the program, so commands cannot wait for each other in a cycle.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec import Struct

from runtime.core.coordinates import PeCoordinates
from runtime.core.program_grid import ProgramGrid
from runtime.core.trace import OpRecord


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


DEFAULT_STREAM = 0
"""The number of the stream of a rank that no program has made: its current stream at the start."""
COMMUNICATION_STREAM = 1
"""The number of the stream of the collectives of a rank."""


@dataclass
class Handle:
    """A command on the stream with number `stream`; `results` align with `requests`, times are
    picoseconds.

    `submitted_ps` is the time of the submission, `completed_ps` that of the last answer at the
    host. The IO_CPU released it at `released_ps`, and had seen the end of all requests at
    `device_done_ps`.
    `queued_ps` is the time that the command waited in the host for its turn, and in the IO_CPU for
    other commands. `kernels_ps` is the longest time that a kernel of the command has run so far.
    The properties raise `RuntimeError` until the command is `done`. `holds` are objects that must
    live until then, such as tensors whose memory the command uses.
    """

    requests: tuple[Request, ...]
    submitted_ps: int
    stream: int = DEFAULT_STREAM
    done: bool = False
    completed_ps: int = 0
    released_ps: int = 0
    device_done_ps: int = 0
    queued_ps: int = 0
    kernels_ps: int = 0
    results: list[bytes] = field(default_factory=list[bytes])
    holds: tuple[object, ...] = ()

    @property
    def total_ps(self) -> int:
        """From the submission to the last answer."""
        self._check_done()
        return self.completed_ps - self.submitted_ps

    @property
    def pe_exec_ps(self) -> int:
        """The part of `total_ps` during which a kernel ran."""
        self._check_done()
        return self.kernels_ps

    @property
    def network_ps(self) -> int:
        """`total_ps` without kernel execution and without waiting for other commands."""
        return self.total_ps - self.pe_exec_ps - self.queued_ps

    def _check_done(self) -> None:
        if not self.done:
            raise RuntimeError(
                "the launch is not complete: wait with torch.ahbm.synchronize(), "
                "or read a tensor that it writes"
            )


class Device(Protocol):
    """The accelerator as the host program of one rank sees it.

    `stream` is the number of the current stream, which takes the commands that name no stream.
    """

    stream: int

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        stream: int | None = None,
    ) -> Handle:
        """Enqueue a command that uses the tensors of these names; does not wait.

        `why` describes it in error messages. Without requests it is a control packet, which is
        complete when all before it in its stream is. `ValueError` and `PhysAddrError` for a request
        that moves bytes outside of a memory.
        """
        ...

    def new_stream(self) -> int:
        """The number of a new stream."""
        ...

    def order_after(self, stream: int, handles: Sequence[Handle]) -> None:
        """The later commands of `stream` wait for these commands. Sends nothing."""
        ...

    def latest(self, stream: int | None = None) -> tuple[Handle, ...]:
        """The commands that a new command of `stream` would wait for as the next in the stream;
        without a stream, the last command of every stream that is not complete.
        """
        ...

    def wait(self, handle: Handle) -> Handle:
        """Suspend the host program until the answer to the command has arrived."""
        ...

    def synchronize(self, stream: int | None = None) -> None:
        """Suspend the host program until all commands, or those of a stream, are answered."""
        ...

    def compute(self, name: str, duration_ps: int) -> None:
        """Suspend the host program for the time in which the host computes `name`, as its record
        in the op log has it.
        """
        ...

    def poll(self, kind: str, handles: Callable[[], Sequence[Handle]]) -> bool:
        """Whether all commands that `handles` returns are answered.

        The first call that returns False takes no simulated time. A repeated call of a `kind`
        for the same commands, with nothing submitted in between, suspends the program until the
        next answer to any of its commands: so a loop around a poll ends when what it waits for is
        complete.
        """
        ...

    def begin_recording(self) -> list[OpRecord]:
        """A list that receives every record of this SIP's op log from now on."""
        ...

    def end_recording(self, records: list[OpRecord]) -> None:
        """Add nothing more to a list of `begin_recording`."""
        ...

    @property
    def now_ps(self) -> int:
        """The simulated time of the host program."""
        ...
