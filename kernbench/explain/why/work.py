"""Work of a piece of the path for a closed form: independent of times and of the machine.

A piece has the work of its operation (bytes from one place to another, elements of a function, a
step of a product), of its command, or of the queue in which it waited. Equal work is computed once.
"""

from dataclasses import dataclass
from typing import Literal

from kernbench.explain.records import RecordedRun
from kernbench.explain.records.columns import Numbers
from kernbench.explain.why.parts import HOST_KINDS
from kernbench.explain.why.piece import PathPiece, PieceKind
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.run_tables import COMMANDS, NONE, OPS, PROGRAMS, Cause
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.jitter import key_of_source

TransferKind = Literal["read", "write", "slot", "credit", "command"]


@dataclass(frozen=True, slots=True)
class TransferWork:
    """Bytes from `source` to `target`: of a read behind a request, of a write before an answer; a
    slot or a credit of a queue; a command of the host.
    """

    kind: TransferKind
    source: RouteEnd
    target: RouteEnd
    nbytes: int


@dataclass(frozen=True, slots=True)
class OperandWork:
    """A wait of a product for a tile on its way by `transfer`, whose latency others hide."""

    transfer: TransferWork


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Bytes at a port of a PE: sent by its DMA, copied inside TCM, or to and from registers."""

    kind: Literal["sent", "copied", "fetched"]
    nbytes: int
    pe: RouteEnd | None = None


@dataclass(frozen=True, slots=True)
class VectorsWork:
    """Elements of a function of the vector engine."""

    function: str
    pe: RouteEnd | None = None


@dataclass(frozen=True, slots=True)
class ProductStepWork:
    """A step of the GEMM engine."""

    pe: RouteEnd | None = None


@dataclass(frozen=True, slots=True)
class IssueWork:
    """The issue of a command, `translated` if it has an address."""

    translated: bool
    pe: RouteEnd | None = None


@dataclass(frozen=True, slots=True)
class SubmissionWork:
    """The time of the host for a command, `copies` if it moves data."""

    copies: bool


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """The way from the stamp of a launch to the start of its kernels on `pes`, cubes and PEs."""

    pes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LaunchReportWork:
    """The way from the end of a kernel on a PE to the IO_CPU, or to the host."""

    pe: tuple[int, int]
    to_host: bool


@dataclass(frozen=True, slots=True)
class HostCopyWork:
    """A copy between the host and memories, of which `memory` is the last; from the IO_CPU on.

    With `to_host` it ends with its answer at the host, otherwise at the IO_CPU. With `is_held` the
    data waited at the IO_CPU for another command.
    """

    memory: RouteEnd
    nbytes: int
    is_read: bool
    is_held: bool
    to_host: bool


@dataclass(frozen=True, slots=True)
class ConfigureWork:
    """A command for the M_CPUs of all cubes, from the IO_CPU on."""

    sip: int
    to_host: bool


@dataclass(frozen=True, slots=True)
class QueueWork:
    """The bytes of other transfers at a link of a SIP, or at a memory if it has no name."""

    link: str
    sip: int = 0


@dataclass(frozen=True, slots=True)
class JitterWork:
    """A random delay of a source: of the host, or of a port of the SIP to others."""

    sip: int
    component: str
    key: str


PeWork = LocalWork | VectorsWork | ProductStepWork | IssueWork
HostWork = SubmissionWork | LaunchWork | LaunchReportWork | ConfigureWork
Work = PeWork | HostWork | TransferWork | OperandWork | HostCopyWork | QueueWork | JitterWork
_CREDIT_BYTES = 16
_READS, _WRITES, _ATOMIC = ("load", "gather"), ("store",), "atomic"


class PathWork:
    """The work of the pieces of a run's path."""

    def __init__(self, records: RecordedRun) -> None:
        self._records = records
        self._addresses = AddressMap(records.topology)
        self._differ = bool(records.topology.overrides)
        self._loads = dict[tuple[int, int, int], tuple[Numbers, Numbers]]()

    def of(self, piece: PathPiece) -> Work | None:
        """The work of a piece; None for one that no number of the topology determines."""
        if piece.kind is PieceKind.QUEUE:
            return self._of_queue(piece)
        if piece.kind is PieceKind.JITTER:
            return JitterWork(piece.sip, piece.component, key_of_source(piece.cause))
        if piece.op != NONE:
            return self._of_operation(piece)
        if piece.kind is PieceKind.ISSUE:
            translated = piece.what.removeprefix("issue ").startswith((*_READS, *_WRITES, _ATOMIC))
            return IssueWork(translated, self._own(piece))
        if piece.command != NONE:
            return self._of_command(piece)
        return None

    def _own(self, piece: PathPiece) -> RouteEnd | None:
        """The PE of a piece where PEs differ; where all are equal, equal work is one."""
        return RouteEnd("pe", piece.sip, piece.cube, piece.pe) if self._differ else None

    def _of_operation(self, piece: PathPiece) -> Work | None:
        ops = self._records.table(OPS, piece.sip)
        name, engine = ops.text("name")[piece.op], ops.text("engine")[piece.op]
        nbytes, here = (
            int(ops["nbytes"][piece.op]),
            RouteEnd("pe", piece.sip, piece.cube, piece.pe),
        )
        written = int(ops["address"][piece.op])
        work: Work | None = None
        if piece.what.startswith("slot "):
            work = TransferWork("slot", here, self._owner(written), nbytes)
        elif piece.cause == Cause.CREDIT:
            work = TransferWork("credit", self._owner(written), here, _CREDIT_BYTES)
        elif engine == "pe_dma":
            work = self._of_request(piece, name, here, nbytes)
        elif engine == "pe_fetch_store":
            work = LocalWork("fetched", nbytes, self._own(piece))
        elif engine == "pe_math":
            work = VectorsWork(name, self._own(piece))
        elif engine == "pe_gemm":
            work = ProductStepWork(self._own(piece))
        return work

    def _of_request(self, piece: PathPiece, name: str, here: RouteEnd, nbytes: int) -> Work:
        """The work of a request of the DMA engine of the PE `here`."""
        ops = self._records.table(OPS, piece.sip)
        read, written = (int(ops[each][piece.op]) for each in ("read_address", "address"))
        if name in _READS:
            return TransferWork("read", self._owner(read), here, nbytes)
        if name in _WRITES:
            return TransferWork("write", here, self._owner(written), nbytes)
        if name.startswith(_ATOMIC):
            # Its record is that of the old elements in TCM, or without them of those in memory. The
            # write of its bytes is left out: the time that it takes more than a load.
            memory = self._owner(written)
            return TransferWork(
                "read", self._owner(read) if memory.kind == "pe" else memory, here, nbytes
            )
        kind = "sent" if name == "ipcq_send" else "copied"
        return LocalWork(kind, nbytes, self._own(piece))

    def _of_queue(self, piece: PathPiece) -> Work | None:
        match piece.cause:
            case Cause.LINK:
                return QueueWork(piece.component, piece.sip if self._differ else 0)
            case Cause.MEMORY:
                return QueueWork("")
            case Cause.OPERAND:
                return self._of_operand(piece)
            case _:
                return None

    def _of_operand(self, piece: PathPiece) -> OperandWork | None:
        """The load of the tile that a product waited for: the last of the PE that ended before."""
        key = piece.sip, piece.cube, piece.pe
        ops = self._records.table(OPS, piece.sip)
        if key not in self._loads:
            chosen = ops.text("engine").equal("pe_dma") & ops.text("name").equal("load")
            chosen &= (ops["cube"] == piece.cube) & (ops["pe"] == piece.pe)
            rows = chosen.nonzero()[0]
            rows = rows[ops["end_ps"][rows].argsort(kind="stable")]
            self._loads[key] = rows, ops["end_ps"][rows]
        rows, ends = self._loads[key]
        index = int(ends.searchsorted(piece.end_ps, side="right")) - 1
        if index < 0:
            return None
        row = int(rows[index])
        source = self._owner(int(ops["read_address"][row]))
        here = RouteEnd("pe", *key)
        return OperandWork(TransferWork("read", source, here, int(ops["nbytes"][row])))

    def _of_command(self, piece: PathPiece) -> Work | None:
        sip, what = piece.sip, piece.what.partition(" ")[0]
        commands = self._records.table(COMMANDS, sip)
        row = int((commands["command"] == piece.command).nonzero()[0][0])
        kind = commands.text("kind")[row]
        to_host = piece.end_ps == commands["end_ps"][row]
        match what:
            case "submission":
                return SubmissionWork(kind in HOST_KINDS)
            case "way":
                return TransferWork("command", RouteEnd("host", sip), RouteEnd("io_cpu", sip), 1)
            case "launch":
                return LaunchWork(self._pes(sip, piece.command))
            case "report":
                pes = self._pes(sip, piece.command)
                return LaunchReportWork(pes[-1], to_host)
            case _:
                if kind in HOST_KINDS:
                    return self._copy(sip, row, to_host=to_host)
                return ConfigureWork(sip, to_host)

    def _copy(self, sip: int, row: int, *, to_host: bool) -> Work | None:
        """The copy of a command: its requests, which run side by side."""
        commands, ops = self._records.table(COMMANDS, sip), self._records.table(OPS, sip)
        kind = commands.text("kind")[row]
        requests = ops.take(ops.text("name").equal(kind))
        last = (requests["end_ps"] == commands["end_ps"][row]).nonzero()[0]
        if not len(last):
            return None
        together = requests["start_ps"] == requests["start_ps"][last[0]]
        return HostCopyWork(
            memory=self._owner(int(requests["address"][last[0]])),
            nbytes=int(requests["nbytes"][together].sum()),
            is_read=kind == "MemoryReadMsg",
            is_held=bool(commands["after"][row] != NONE),
            to_host=to_host,
        )

    def _pes(self, sip: int, command: int) -> tuple[tuple[int, int], ...]:
        """The PEs of a launch in the order of the ends of their kernels."""
        programs = self._records.table(PROGRAMS, sip)
        chosen = programs["command"] == command
        cubes, pes = programs["cube"][chosen].tolist(), programs["pe"][chosen].tolist()
        return tuple(zip(cubes, pes, strict=True))

    def _owner(self, address: int) -> RouteEnd:
        """The memory, or the PE of the TCM, in which an address lies."""
        memory = PhysAddr.decode(address, self._addresses)
        match memory.resource:
            case "hbm" | "sram":
                return RouteEnd(memory.resource, memory.sip, memory.cube, memory.pe)
            case _:
                return RouteEnd("pe", memory.sip, memory.cube, memory.pe)
