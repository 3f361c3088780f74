"""What a piece of the path did, as a closed form needs it: independent of times and of the machine.

A piece has the work of its operation (bytes from one place to another, elements of a function, a
step of a product), of its command, or of the queue in which it waited. Equal work is computed once.
"""

from dataclasses import dataclass

from kernbench.run_records import RecordedRun
from kernbench.why.parts import HOST_KINDS
from kernbench.why.piece import PathPiece, PieceKind
from runtime.core.run_tables import COMMANDS, NONE, OPS, PROGRAMS, Cause
from runtime.model.addresses import AddressMap, PhysAddr


@dataclass(frozen=True, slots=True)
class RoutePlace:
    """An end of a route: `host`, `io_cpu`, `m_cpu`, `pe`, `hbm` or `sram` of a SIP."""

    kind: str
    sip: int
    cube: int = NONE
    pe: int = NONE


@dataclass(frozen=True, slots=True)
class TransferWork:
    """Bytes from `source` to `target`; of a read, behind a request from
    `target`.

    `overheads` are the keys of the fixed times besides those of the route. With `answered`, an
    acknowledgement returns.
    """

    source: RoutePlace
    target: RoutePlace
    nbytes: int
    overheads: tuple[str, ...] = ()
    requested: bool = False
    answered: bool = False


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Bytes at a port of a PE, after fixed times; `gbs` is the key of the bandwidth."""

    nbytes: int
    gbs: str
    overheads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorsWork:
    """Elements of a function of the vector engine."""

    function: str


@dataclass(frozen=True, slots=True)
class ProductStepWork:
    """A step of the GEMM engine."""


@dataclass(frozen=True, slots=True)
class OverheadsWork:
    """Fixed times alone, by their keys."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """From the stamp of a launch to the start of its kernels on `pes`, cubes and PEs."""

    pes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class LaunchReportWork:
    """From the end of a kernel on a PE to the IO_CPU, or to the host."""

    pe: tuple[int, int]
    to_host: bool


@dataclass(frozen=True, slots=True)
class HostCopyWork:
    """A copy between the host and memories, of which `memory` is the last; from the IO_CPU on.

    With `to_host` it ends with its answer at the host, otherwise at the IO_CPU. With `is_held` the
    data waited at the IO_CPU for another command.
    """

    memory: RoutePlace
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
    """The bytes of other transfers at a link, or at a memory if it has no name."""

    link: str


PeWork = LocalWork | VectorsWork | ProductStepWork | OverheadsWork
Work = (
    PeWork | TransferWork | LaunchWork | LaunchReportWork | HostCopyWork | ConfigureWork | QueueWork
)
DMA, IPCQ, MMU = "pe.dma.overhead_ns", "pe.ipcq.overhead_ns", "pe.mmu.overhead_ns"
ISSUE = ("pe.cpu.overhead_ns", "pe.scheduler.overhead_ns")
TCM_GBS, PORT_GBS = "pe.tcm.bw_gbs", "pe.fetch_store.bw_gbs"
_CREDIT_BYTES = 16
_READS, _WRITES = ("load", "gather"), ("store",)


class PathWork:
    """The work of the pieces of a run's path."""

    def __init__(self, records: RecordedRun) -> None:
        self._records = records
        self._addresses = AddressMap(records.topology)

    def of(self, piece: PathPiece) -> Work | None:
        """The work of a piece; None for one that no number of the topology determines."""
        if piece.kind is PieceKind.QUEUE:
            if piece.cause == Cause.LINK:
                return QueueWork(piece.component)
            return QueueWork("") if piece.cause == Cause.MEMORY else None
        if piece.op != NONE:
            return self._of_operation(piece)
        if piece.kind is PieceKind.ISSUE:
            translated = piece.what.removeprefix("issue ").startswith((*_READS, *_WRITES))
            return OverheadsWork((*ISSUE, MMU) if translated else ISSUE)
        if piece.command != NONE:
            return self._of_command(piece)
        return None

    def _of_operation(self, piece: PathPiece) -> Work | None:
        ops = self._records.table(OPS, piece.sip)
        name, engine = ops.text("name")[piece.op], ops.text("engine")[piece.op]
        nbytes, here = (
            int(ops["nbytes"][piece.op]),
            RoutePlace("pe", piece.sip, piece.cube, piece.pe),
        )
        written = int(ops["address"][piece.op])
        found: Work | None = None
        if piece.what.startswith("slot "):
            found = TransferWork(here, self._owner(written), nbytes, (DMA, IPCQ))
        elif piece.cause == Cause.CREDIT:
            found = TransferWork(self._owner(written), here, _CREDIT_BYTES, (IPCQ,))
        elif engine == "pe_dma" and name in _READS:
            source = self._owner(int(ops["read_address"][piece.op]))
            found = TransferWork(source, here, nbytes, (DMA,), requested=True)
        elif engine == "pe_dma" and name in _WRITES:
            found = TransferWork(here, self._owner(written), nbytes, (DMA,), answered=True)
        elif engine == "pe_dma":
            found = LocalWork(nbytes, TCM_GBS, (DMA,))
        elif engine == "pe_fetch_store":
            found = LocalWork(nbytes, PORT_GBS)
        elif engine == "pe_math":
            found = VectorsWork(name)
        elif engine == "pe_gemm":
            found = ProductStepWork()
        return found

    def _of_command(self, piece: PathPiece) -> Work | None:
        sip, what = piece.sip, piece.what.partition(" ")[0]
        commands = self._records.table(COMMANDS, sip)
        row = int((commands["command"] == piece.command).nonzero()[0][0])
        kind = commands.text("kind")[row]
        to_host = piece.end_ps == commands["end_ps"][row]
        match what:
            case "submission":
                copies = kind in HOST_KINDS
                return OverheadsWork((f"host.{'copy' if copies else 'launch'}_overhead_ns",))
            case "way":
                return TransferWork(RoutePlace("host", sip), RoutePlace("io_cpu", sip), 1)
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

    def _owner(self, address: int) -> RoutePlace:
        """The memory, or the PE of the TCM, in which an address lies."""
        at = PhysAddr.decode(address, self._addresses)
        kind = at.resource if at.resource in ("hbm", "sram") else "pe"
        return RoutePlace(kind, at.sip, at.cube, at.pe)
