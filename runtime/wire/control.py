"""Control messages between the coordinator and an LP, in both directions."""

from runtime.core.bench_registry import Scalar
from runtime.core.simtime import NEVER_PS
from runtime.wire.fields import (
    Address,
    Addresses,
    Chunk,
    Count,
    ExitCode,
    Flat,
    HostNumber,
    LpNumber,
    MaybeLp,
    MaybeRank,
    Microseconds,
    Milliseconds,
    Seconds,
    SipNumber,
    Text,
    Texts,
    TimePs,
    Wire,
)
from runtime.wire.reports import BlockedPe, DevicePrint, SipReport, SlotTransfer


class ModuleCode(Flat, frozen=True):
    """The code of a module in an LP: its file, and the SHA-256 of the bytes that were imported.

    `sha256` is hex, or `unreadable` for a module without a file that can be read.
    """

    module: str
    file: str
    sha256: str


class LpHost(Flat, frozen=True):
    """The host of an LP: its name, for people, and a key which only the processes of it have.

    Two processes have the same key if they share a file system for sockets, a network and a memory.
    They have the same `machine` if they share a clock.
    """

    name: Text
    key: Text
    machine: Text


class Hello(Wire, frozen=True):
    """LP to coordinator, first message: its rank, and the endpoint for LPs of other hosts.

    `lp` is the number with which the process joins: that of the LP where the coordinator has
    started it, else its rank among the processes of a launcher. `endpoint` is empty where no LP of
    another host can join. `code` has the modules which the LP has imported so far. `host` is absent
    where the coordinator has started all LPs. `command` is a hash of the command line of a process
    that a launcher has started: it is the same for all.
    """

    protocol: Count
    run_id: str
    lp: LpNumber
    pid: Count
    endpoint: str
    # Optional, so that a Hello of an older protocol is decoded and its version refused by number.
    code: tuple[ModuleCode, ...] = ()
    host: LpHost | None = None
    command: str = ""


SCRIPT_KINDS = ("script", "module")
"""The kinds of jobs whose program runs as `__main__`."""


class Job(Flat, frozen=True):
    """The program and the configuration that every LP runs.

    `topology` and `ccl` are the checked values of the user's files as MessagePack, with the number
    of SIPs of the run: an LP reads no file.
    `program` is `module:function` for a bench, a path for a script, an import path for a module, or
    empty when the function came through the private pipe of the parent. `arguments` are the flags
    of a bench, `argv` the arguments of a script or module. `remote_dma` declares that DMA engines
    may access other SIPs: then no SIP can promise more than its next event. `verify` requests what
    a replay of the op log needs beside it: `Written` and `MemoryContents`. `ccl_trace` requests a
    report of every slot that a kernel sends or receives. `delay_us` holds every content between LPs
    for that time, as if each LP were on a host of its own; None for none. `as_cuda` maps the names
    of CUDA in PyTorch to the simulated device. `records` requests the tables of
    `runtime.core.run_tables`.
    """

    topology: bytes
    ccl: bytes
    program: str
    kind: str
    arguments: dict[str, Scalar]
    argv: tuple[str, ...]
    data: bool
    trace: bool
    jitter_seed: int
    jitter_ms: Milliseconds
    remote_dma: bool = False
    verify: bool = False
    ccl_trace: bool = False
    as_cuda: bool = False
    records: bool = False
    delay_us: Microseconds | None = None

    @property
    def is_script(self) -> bool:
        """Whether the program runs as `__main__`."""
        return self.kind in SCRIPT_KINDS


class Peers(Wire, frozen=True):
    """Coordinator to LP: its number, and of every LP (index = LP) endpoint, host and SIPs; the job.

    LPs of one host have consecutive numbers. `host_names` are the names of the hosts.
    """

    lp: LpNumber
    endpoints: tuple[str, ...]
    hosts: tuple[HostNumber, ...]
    host_names: tuple[Text, ...]
    sips_of_lp: tuple[tuple[SipNumber, ...], ...]
    job: Job


class Ready(Wire, frozen=True):
    """LP to coordinator: chips are built and channels are connected.

    `config_hash` must be equal on all LPs. `code` has the modules imported since `Hello`, and those
    which the run names: the program, and the modules of the ccl file.
    """

    lp: LpNumber
    config_hash: str
    code: tuple[ModuleCode, ...] = ()


class Start(Wire, frozen=True):
    """Coordinator to LP: start the run."""


class SlowCall(Flat, frozen=True):
    """A collective before which a rank had computed for `python_s` since the collective before."""

    call: Count
    name: str
    python_s: Seconds


class GroupCalls(Flat, frozen=True):
    """The collectives that a rank has called in a process group with a time limit.

    `calls` counts them. `open_call` is the number of the earliest one that is not complete on this
    rank, or 0, and `open_name` its name. `slow_calls` are the latest of those that came late.
    """

    group: str
    ranks: tuple[SipNumber, ...]
    timeout_s: Seconds
    calls: Count
    open_call: Count
    open_name: str
    slow_calls: tuple[SlowCall, ...] = ()


class RankActivity(Flat, frozen=True):
    """Activity of a rank: wall time spent in its program, and calls in groups with a limit."""

    rank: SipNumber
    python_s: Seconds
    groups: tuple[GroupCalls, ...]


class Status(Wire, frozen=True):
    """LP to coordinator, a few times a second: the LP is alive, and has reached `time_ps`.

    `ranks` are the ranks of the LP. `blocked_s` is wall time spent in waiting for peers. An LP
    whose next event, at `next_ps`, is
    not before its safe time waits for a promise: `safe_ps` is the least promise that it has
    received, and the sender was LP `waits_for`. An LP without peers waits for none, -1.
    `oldest_wait` is the kernel that has waited longest for a peer.
    """

    lp: LpNumber
    time_ps: TimePs
    events: Count
    blocked_s: Seconds
    next_ps: TimePs = NEVER_PS
    safe_ps: TimePs = NEVER_PS
    waits_for: MaybeLp = -1
    ranks: tuple[RankActivity, ...] = ()
    oldest_wait: BlockedPe | None = None


class Busy(Wire, frozen=True):
    """LP to coordinator, about twice a second while the program of one of its ranks computes.

    Nothing else of the LP goes on meanwhile, so another thread sends it, on a connection of its
    own. The program has been computing for `stretch_s`; `imports` is whether it imports a module.
    `used_s` is the processor time of the process, `used_by_children_s` that of its children which
    have ended.
    """

    lp: LpNumber
    run_id: str
    stretch_s: Seconds
    imports: bool
    ranks: tuple[RankActivity, ...]
    used_s: Seconds = 0.0
    used_by_children_s: Seconds = 0.0


class TraceChunk(Wire, frozen=True):
    """LP to coordinator: consecutive op records of one SIP, encoded with `codec.encode_records`."""

    lp: LpNumber
    sip: SipNumber
    records: bytes


class RecordChunk(Wire, frozen=True):
    """LP to coordinator, in a run with `records`: consecutive rows of a table of one SIP.

    `table` is the name of one of `runtime.core.run_tables.TABLES`; its rows are packed. `texts` are
    appended to the list of texts of the SIP before the rows are read, whose texts are indices of
    that list.
    """

    lp: LpNumber
    sip: SipNumber
    table: Text
    rows: Chunk
    texts: Texts


class Written(Wire, frozen=True):
    """LP to coordinator: the next bytes which the host of a SIP wrote.

    They come in the order of the host's `MemoryWriteMsg` records.
    """

    lp: LpNumber
    sip: SipNumber
    data: Chunk


class MemoryContents(Wire, frozen=True):
    """LP to coordinator, at the end of a run: bytes of a memory, from a physical address on.

    Bytes that are not reported are zero.
    """

    lp: LpNumber
    sip: SipNumber
    address: Address
    data: Chunk


class Transferred(Wire, frozen=True):
    """LP to coordinator, in a run with `ccl_trace`: the next slot sent or received by a kernel."""

    lp: LpNumber
    transfer: SlotTransfer


class Printed(Wire, frozen=True):
    """LP to coordinator: the next line that a kernel has printed."""

    lp: LpNumber
    line: DevicePrint


class Refused(Flat, frozen=True):
    """Connections of strangers, `times` of them, that were refused for one reason.

    `addresses` are the first of their addresses, each once.
    """

    reason: Text
    times: Count
    addresses: Addresses = ()


class HostTraffic(Flat, frozen=True):
    """Traffic of an LP to LPs of other hosts, and the trips behind its last event.

    `frames` counts all ZeroMQ messages, `silence_frames` the reports and grants among them. `trips`
    is the number of trips between hosts, one after the other, for which the run has waited in the
    chain of frames that ends with this LP.
    """

    frames: Count = 0
    bytes: Count = 0
    silence_frames: Count = 0
    trips: Count = 0


class Done(Wire, frozen=True):
    """LP to coordinator: no event is left.

    A SIP whose rank has not finished is part of a global deadlock. `code` has the modules imported
    since `Ready`. `skipped_steps` are the steps of products that were computed ahead, and
    `listed_kernels` of the `kernels` that ran on a PE ran from a command list, and
    `repeated_kernels` were those of a launch that repeats an earlier one. `refused` are the
    strangers at the socket of this LP for its peers. `between_hosts` is the traffic to LPs of other
    hosts.
    """

    lp: LpNumber
    sips: tuple[SipReport, ...]
    events: Count
    rounds: Count
    messages: Count
    null_messages: Count
    blocked_s: Seconds
    busy_s: Seconds
    code: tuple[ModuleCode, ...] = ()
    ranks: tuple[RankActivity, ...] = ()
    skipped_steps: Count = 0
    kernels: Count = 0
    listed_kernels: Count = 0
    repeated_kernels: Count = 0
    refused: tuple[Refused, ...] = ()
    between_hosts: HostTraffic = HostTraffic()


class Failed(Wire, frozen=True):
    """LP to coordinator: a rank, a kernel or the LP itself raised an error.

    `rank` is -1 where no rank is to blame. `sender` is empty, or the LP whose message broke the
    protocol, as `LP 3`: then that LP is to blame, not the reporting LP. `exit_code` is that of a
    rank which ended itself, as by `sys.exit(3)`; 0 for every other error. `about_input` is whether
    the cause is a flag or a configuration file: an error of kernbench, not one of the same name.
    `lost_peer` is the LP to which the connection is lost, if that is the error, else -1.
    """

    lp: LpNumber
    rank: MaybeRank
    error: str
    message: str
    traceback: str
    time_ps: TimePs
    sender: str = ""
    exit_code: ExitCode = 0
    about_input: bool = False
    lost_peer: MaybeLp = -1


class Abort(Wire, frozen=True):
    """Coordinator to LP: stop at once; also the reply to a Hello that is refused."""

    reason: str


class Bye(Wire, frozen=True):
    """Coordinator to LP: everything has arrived, exit."""


class MessagePiece(Wire, frozen=True):
    """The next bytes of a message that is too long to be sent whole; in both directions.

    `lp` is the LP of the connection. The pieces of a message follow each other; `last` marks the
    last one.
    """

    lp: LpNumber
    data: Chunk
    last: bool


FromLp = (
    Hello
    | Ready
    | Status
    | Busy
    | TraceChunk
    | RecordChunk
    | Written
    | MemoryContents
    | Transferred
    | Printed
    | Done
    | Failed
    | MessagePiece
)
FromCoordinator = Peers | Start | Abort | Bye | MessagePiece
