"""Everything that crosses a process boundary, as flat MessagePack arrays `[tag, field, field, ...]`.

Control messages run between the coordinator and each LP; `Frame` runs between LPs. A change to any field is a change of
`PROTOCOL_VERSION`. Strings and arrays are bounded by the codec, types are checked while decoding.
"""

from typing import Annotated

from msgspec import Meta, Struct

from runtime.core.bench_registry import BenchOutcome, Scalar
from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import NEVER_PS, format_ps

PROTOCOL_VERSION = 3
CHUNK_BYTES = 4 << 20
"""The most bytes of a memory, or of what a host wrote, that one message carries."""

Chunk = Annotated[bytes, Meta(max_length=CHUNK_BYTES)]
Text = Annotated[str, Meta(max_length=1 << 10)]


class Wire(Struct, array_like=True, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages: a tagged, typed, fixed-length array."""


class Flat(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Base of the records inside messages: the same without a tag."""


# --- between LPs ------------------------------------------------------------------------------------------------------


class Message(Struct, frozen=True, gc=False):
    """One timestamped message on a channel.

    `(time_ps, source, seq)` is the total order of everything that reaches `target`: `source` and `target` are the
    entities (SIPs) at the ends of the channel, `seq` counts the messages from one to the other. `body` is a flat record
    and `text` a text beside it that only the model understands. `payload` are the modelled bytes; on the wire they travel in
    a raw part of their own.
    """

    time_ps: int
    source: int
    target: int
    seq: int
    body: tuple[int, ...]
    payload: bytes | memoryview = b""
    text: str = ""


class Frame(Struct, frozen=True):
    """What one LP tells another in one round: messages in sending order and a promise.

    No later frame carries a message before `promise_ps`. `null_hops` counts the LPs a promise has crossed since an LP
    that executed an event; it is the time-to-live that stops promises from creeping through idle gaps. `transit_ps[n]` is
    the promise for messages that cross more than n further channels after this one.
    """

    promise_ps: int
    null_hops: int
    messages: tuple[Message, ...] = ()
    transit_ps: tuple[int, ...] = ()


class SilenceReport(Wire, frozen=True):
    """An LP that has fallen silent: its next event and, per peer LP, how many messages it has sent and received."""

    next_ps: int
    sent: tuple[int, ...]
    received: tuple[int, ...]


class Grant(Wire, frozen=True):
    """The lower bound on time stamp (LBTS): no LP will ever execute an event before `lbts_ps`."""

    lbts_ps: int


class MessageHeader(Flat, frozen=True):
    """A `Message` on the wire: the next `payload_bytes` bytes of the raw part are its payload."""

    time_ps: int
    source: int
    target: int
    seq: int
    body: tuple[int, ...]
    payload_bytes: int
    text: Text


class FrameHeader(Wire, frozen=True):
    """A `Frame` on the wire."""

    promise_ps: int
    null_hops: int
    messages: tuple[MessageHeader, ...]
    transit_ps: tuple[int, ...]


class Envelope(Flat, frozen=True):
    """The first part of everything between LPs: which run, which LP, what."""

    run_id: str
    lp: int
    content: FrameHeader | SilenceReport | Grant


PeerContent = Frame | SilenceReport | Grant

# --- between the coordinator and the LPs ------------------------------------------------------------------------------


class Hello(Wire, frozen=True):
    """LP to coordinator, first message: who it is and where its peers reach it."""

    protocol: int
    run_id: str
    lp: int
    pid: int
    endpoint: str


class Job(Flat, frozen=True):
    """What every LP runs. Configuration travels as the text the user wrote, so that both sides parse the same file.

    `program` is `module:function` for a bench, a path for a script, or empty when the function came through the private
    pipe of the parent. `arguments` are the flags of a bench or the `argv` of a script. `remote_dma` declares that DMA engines
    may reach into other SIPs: then no SIP can promise more than its next event. `verify` asks for what a replay of the op log
    needs beside it: `Written` and `MemoryContents`. `ccl_trace` asks for every slot that a kernel sends or receives.
    """

    topology_yaml: str
    ccl_yaml: str
    sips: int
    program: str
    kind: str
    arguments: dict[str, Scalar]
    argv: tuple[str, ...]
    data: bool
    trace: bool
    jitter_seed: int
    jitter_ms: float
    remote_dma: bool = False
    verify: bool = False
    ccl_trace: bool = False


class Peers(Wire, frozen=True):
    """Coordinator to LP: where everybody is (index = LP), which SIPs each LP holds, and what to run."""

    endpoints: tuple[str, ...]
    sips_of_lp: tuple[tuple[int, ...], ...]
    job: Job


class Ready(Wire, frozen=True):
    """LP to coordinator: chips are built and channels are connected. `config_hash` must be the same everywhere."""

    lp: int
    config_hash: str


class Start(Wire, frozen=True):
    """Coordinator to LP: go."""


class Status(Wire, frozen=True):
    """LP to coordinator, a few times a second: alive, and how far. `blocked_s` is wall time spent waiting for peers.

    An LP whose next event, at `next_ps`, is not before its safe time waits for a promise: `safe_ps` is the least that it has
    received, and it came from LP `waits_for`. An LP without peers waits for none, -1.
    """

    lp: int
    time_ps: int
    events: int
    blocked_s: float
    next_ps: int = NEVER_PS
    safe_ps: int = NEVER_PS
    waits_for: int = -1


class TraceChunk(Wire, frozen=True):
    """LP to coordinator: consecutive op records of one SIP, encoded with `codec.encode_records`."""

    lp: int
    sip: int
    records: bytes


class Written(Wire, frozen=True):
    """LP to coordinator: the next bytes that the host of a SIP wrote, in the order of its `MemoryWriteMsg` records."""

    lp: int
    sip: int
    data: Chunk


class MemoryContents(Wire, frozen=True):
    """LP to coordinator, at the end of a run: bytes of a memory of a SIP, from a physical address on.

    What is not told is zero.
    """

    lp: int
    sip: int
    address: int
    data: Chunk


class RingAddress(Flat, frozen=True):
    """A physical address, decoded: `offset` bytes into a `resource`. `pe` is -1 for what the PEs of a cube share."""

    address: int
    resource: str
    sip: int
    cube: int
    pe: int
    offset: int

    def __str__(self) -> str:
        owner = f"sip {self.sip} cube {self.cube}" + (f" pe {self.pe}" if self.pe >= 0 else "")
        return f"{self.address:#x} ({self.resource} of {owner} + {self.offset:#x})"


class SlotTransfer(Flat, frozen=True):
    """A slot that a kernel has sent or received: `operation` is `send` or `recv`, `time_ps` its end.

    `slot` counts from 0 in the ring, `at` is where it lies.
    """

    time_ps: int
    sip: int
    cube: int
    pe: int
    kernel: str
    operation: str
    direction: str
    peer: tuple[int, int, int]
    nbytes: int
    dtype: str
    slot: int
    at: RingAddress

    def __str__(self) -> str:
        arrow = "->" if self.operation == "send" else "<-"
        return (
            f"{format_ps(self.time_ps)}  sip {self.sip} cube {self.cube} pe {self.pe}: kernel {self.kernel!r} {self.operation} "
            f"{self.direction} {arrow} {PeCoordinates(*self.peer)}, {self.nbytes} B {self.dtype}, slot {self.slot} at {self.at}"
        )


class Transferred(Wire, frozen=True):
    """LP to coordinator, in a run with `ccl_trace`: the next slot that a kernel of a SIP has sent or received."""

    lp: int
    transfer: SlotTransfer


class QueuePointers(Flat, frozen=True):
    """The registers of one queue pair of a PE. Slots are counted from 0 for ever; slot n of a ring is n modulo `n_slots`.

    Of the ring at the peer, `tx`: `head` counts the slots sent, `peer_tail` those that the peer has given back as far as is
    known here; what is between them lacks in `credits`. Of its own ring, `rx`: `peer_head` counts the slots that have arrived,
    `tail` those read and given back. A pair that works one way has one ring. `table` says whose queue it is.
    """

    sip: int
    cube: int
    pe: int
    table: str
    direction: str
    peer: tuple[int, int, int]
    n_slots: int
    slot_size: int
    head: int
    peer_tail: int
    credits: int
    tx: RingAddress | None
    peer_head: int
    tail: int
    rx: RingAddress | None

    @property
    def at_rest(self) -> bool:
        """Whether every credit is home and every arrival was read."""
        return self.credits == self.n_slots and self.peer_head == self.tail

    def __str__(self) -> str:
        return (
            f"sip {self.sip} cube {self.cube} pe {self.pe} {self.table} {self.direction}: "
            f"sends head {self.head}, peer's tail {self.peer_tail}, {self.credits} of {self.n_slots} credits, ring {self.tx}; "
            f"receives peer's head {self.peer_head}, tail {self.tail}, ring {self.rx}"
        )


class BlockedPe(Flat, frozen=True):
    """A kernel that waits: what it does (`send`, `recv`), in which direction, on which peer, since when, at which `file:line`.

    A receive from any direction has no `peer`. `call` is the collective call that the kernel is a part of, if any: a PE may run
    one of these and another kernel.
    """

    sip: int
    cube: int
    pe: int
    kernel: str
    operation: str
    direction: str
    peer: tuple[int, int, int] | None
    since_ps: int
    line: str = ""
    call: str = ""

    def __str__(self) -> str:
        peer = "any peer" if self.peer is None else PeCoordinates(*self.peer)
        line = f" at {self.line}" if self.line else ""
        call = f", in {self.call}" if self.call else ""
        return (
            f"{PeCoordinates(self.sip, self.cube, self.pe)}: kernel {self.kernel!r} {self.operation} {self.direction} ({peer}) "
            f"since {format_ps(self.since_ps)}{line}{call}"
        )


class SipReport(Flat, frozen=True):
    """The end of one SIP: its digest, the end of its last operation, what its rank returned, what its components counted.

    `broken_law` is empty, or says which law of the model does not hold at the end; while a rank has not finished that is
    only natural. `queues` are those of the PEs that wait, and elsewhere those that are not at rest.
    """

    sip: int
    digest: str
    time_ps: int
    finished: bool
    outcome: BenchOutcome | None
    counters: dict[str, int]
    blocked: tuple[BlockedPe, ...]
    waiting_for: str
    broken_law: str = ""
    queues: tuple[QueuePointers, ...] = ()


class Done(Wire, frozen=True):
    """LP to coordinator: no event is left. A SIP whose rank has not finished is part of a global deadlock."""

    lp: int
    sips: tuple[SipReport, ...]
    events: int
    rounds: int
    messages: int
    null_messages: int
    blocked_s: float
    busy_s: float


class Failed(Wire, frozen=True):
    """LP to coordinator: a rank, a kernel or the LP itself raised. `rank` is -1 where no rank is to blame."""

    lp: int
    rank: int
    error: str
    message: str
    traceback: str
    time_ps: int


class Abort(Wire, frozen=True):
    """Coordinator to LP: stop at once; also the answer to a Hello that is refused."""

    reason: str


class Bye(Wire, frozen=True):
    """Coordinator to LP: everything has arrived, exit."""


FromLp = (
    Hello | Ready | Status | TraceChunk | Written | MemoryContents | Transferred | Done | Failed
)
FromCoordinator = Peers | Start | Abort | Bye
