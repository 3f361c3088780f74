"""`kernbench.simulate`: a whole run inside the calling process, with its result as objects.

It is one LP with every SIP, without a coordinator or sockets, and simulates what a run from the
command line does: times, values and digest are the same.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coordinator.report.aggregate import run_digest
from runtime.ccl.config import parse_checked_ccl
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import InvariantError
from runtime.core.output import print_lines
from runtime.core.simtime import PS_PER_NS
from runtime.core.trace import OpRecord
from runtime.diagnosis.deadlock import deadlock
from runtime.model.topology import parse_topology
from runtime.wire.codec import decode_records
from runtime.wire.control import Done, Job, Peers
from runtime.wire.environment import ccl_trace_requested
from runtime.wire.reports import DevicePrint, SlotTransfer, in_order_of_time
from sip_node.chip.kernel import ProgramRaised
from sip_node.node import LpNode
from sip_node.pdes.loop import LogicalProcess
from sip_node.reporter import print_transfer
from sip_node.user_program import Programs

OnRecords = Callable[[int, Sequence[OpRecord]], None]


def no_records(sip: int, records: Sequence[OpRecord]) -> None:
    """A callback for `on_records` of a program which has no use for the op log."""


@dataclass(frozen=True)
class Simulation:
    """The result of a run.

    `returned` is what the program has returned on each rank, `records` the op log of each SIP, in
    the order of ends, `prints` the lines that kernels have printed, in the order of (time, SIP,
    cube, PE). `transfers` are the slots sent and received, in a run with `KERNBENCH_CCL_TRACE`.

    `done` is the report of the LP and `node` the LP with its chips. With `verify`, `written` is
    what each host wrote, and `contents` what the memories hold by physical address. With `record`,
    `rows` are those of each SIP and table, packed, and `texts` those of each SIP.
    """

    done: Done
    node: LpNode
    records: dict[int, list[OpRecord]]
    returned: dict[int, Any]
    written: dict[int, bytearray]
    contents: list[tuple[int, bytes]]
    transfers: list[SlotTransfer]
    prints: list[DevicePrint]
    rows: dict[tuple[int, str], bytes]
    texts: dict[int, list[str]]

    @property
    def digest(self) -> str:
        """The digest that a run from the command line prints, whole: 64 hexadecimal digits."""
        return run_digest(self.done.sips)

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of all SIPs."""
        return tuple(report.digest for report in self.done.sips)

    @property
    def time_ps(self) -> int:
        """The end of the last operation or command."""
        return max(report.time_ps for report in self.done.sips)

    @property
    def time_ns(self) -> float:
        """The same in nanoseconds."""
        return self.time_ps / PS_PER_NS

    @property
    def counters(self) -> dict[int, dict[str, int]]:
        """The counters of each SIP, by the names of `run.json`."""
        return {report.sip: report.counters for report in self.done.sips}

    def of(self, engine: str, name: str = "") -> list[tuple[int, OpRecord]]:
        """(sip, record) of an engine, whose names start with `name`."""
        return [
            (sip, record)
            for sip, records in self.records.items()
            for record in records
            if record.engine == engine and record.name.startswith(name)
        ]


on_simulated: ContextVar[Callable[[str, Simulation], None] | None] = ContextVar(
    "what is called with each simulation, which is then recorded, and its name", default=None
)


class _Recorder:
    def __init__(self, on_records: OnRecords | None) -> None:
        self._on_records = on_records
        self.records: dict[int, list[OpRecord]] = {}
        self.writes: dict[int, bytearray] = {}
        self.memories: list[tuple[int, bytes]] = []
        self.transfers: list[SlotTransfer] = []
        self.prints: list[DevicePrint] = []
        self.rows: dict[tuple[int, str], bytearray] = {}
        self.texts: dict[int, list[str]] = {}

    def round(self, time_ps: int, loop: LogicalProcess, programs: LpNode) -> None:
        pass

    def trace(self, sip: int, records: bytes) -> None:
        if self._on_records is no_records:
            # To decode the records of a layer of a model takes a tenth of its simulation.
            return
        decoded = decode_records(records, f"SIP {sip}")
        if self._on_records is None:
            self.records.setdefault(sip, []).extend(decoded)
        else:
            self._on_records(sip, decoded)

    def recorded(self, sip: int, table: str, rows: bytes, texts: tuple[str, ...]) -> None:
        self.texts.setdefault(sip, []).extend(texts)
        self.rows.setdefault((sip, table), bytearray()).extend(rows)

    def written(self, sip: int, data: bytes) -> None:
        self.writes.setdefault(sip, bytearray()).extend(data)

    def contents(self, sip: int, address: int, data: bytes) -> None:  # noqa: ARG002 - see below
        # The address contains the SIP.
        self.memories.append((address, data))

    def transferred(self, transfer: SlotTransfer) -> None:
        self.transfers.append(transfer)
        print_transfer(transfer)

    def printed(self, line: DevicePrint) -> None:
        self.prints.append(line)

    def world(self, done: Done, node: LpNode, returned: dict[int, Any]) -> Simulation:
        return Simulation(
            done=done,
            node=node,
            # By SIP: which of them is the first at one time depends on nothing that is simulated.
            records=dict(sorted(self.records.items())),
            returned=dict(sorted(returned.items())),
            written=self.writes,
            contents=self.memories,
            transfers=self.transfers,
            prints=in_order_of_time(self.prints),
            rows={of: bytes(rows) for of, rows in sorted(self.rows.items())},
            texts=dict(sorted(self.texts.items())),
        )


def simulate(  # noqa: PLR0913 - the options of a run
    program: Callable[[int], object],
    sips: int = 2,
    *,
    topology: str | Path | None = None,
    ccl: str | Path | None = None,
    data: bool = True,
    remote_dma: bool = False,
    verify: bool = False,
    record: bool = False,
    on_records: OnRecords | None = None,
) -> Simulation:
    """Run `program(rank)` on every SIP to the end.

    Both files are given by their path or as text; the default is those that ship with kernbench.
    Without `data` nothing is computed: times are the same, memories are empty. With `remote_dma` a
    kernel may load from another SIP.

    An error of a rank or a kernel is raised here, one of a file as `ConfigError`, a global deadlock
    as `IpcqDeadlock`, a broken law of the model as `InvariantError`. The environment variable
    `KERNBENCH_CCL_TRACE` works as in any run. With `on_records(sip, records)`, which gets the op
    log part by part, the result has none.
    """
    job = Job(
        topology=parse_topology(*_read(topology, "topology.yaml"), sips).encoded(),
        ccl=parse_checked_ccl(*_read(ccl, "ccl.yaml")).file.encoded(),
        program="",
        kind="function",
        arguments={},
        argv=(),
        data=data,
        trace=True,
        jitter_seed=0,
        jitter_ms=0.0,
        remote_dma=remote_dma,
        verify=verify,
        ccl_trace=ccl_trace_requested(),
        records=record or on_simulated.get() is not None,
    )
    recorder = _Recorder(on_records)
    returned: dict[int, Any] = {}

    def main(rank: int) -> None:
        returned[rank] = program(rank)

    peers = Peers(
        lp=0,
        endpoints=("",),
        hosts=(0,),
        host_names=("",),
        sips_of_lp=(tuple(range(sips)),),
        job=job,
    )
    with closing(LpNode(peers, Programs(job, main), None, recorder)) as node:
        try:
            done = _completed(node)
        finally:
            # Also after an error, whose cause they may show.
            print_lines(map(str, in_order_of_time(recorder.prints)))
    return _observed(program, recorder.world(done, node, returned), record=record)


def _observed(program: Callable[[int], object], world: Simulation, *, record: bool) -> Simulation:
    """Pass a run to the observer, if there is one; the run as the caller has requested it."""
    observer = on_simulated.get()
    if observer is None:
        return world
    observer(f"simulation of {getattr(program, '__qualname__', 'a program')}", world)
    return world if record else replace(world, rows={}, texts={})


def _read(file: str | Path | None, default: str) -> tuple[str, str]:
    """The text of a file, and how an error about it names it."""
    if isinstance(file, str):
        return file, f"the text of {default}"
    path = file or default_file(default)
    return read_text(path), str(path)


def _completed(node: LpNode) -> Done:
    """Run to the end; raises what keeps the run from a result."""
    try:
        done = node.run()
    except ProgramRaised as raised:
        raise raised.error from None
    if not all(report.finished for report in done.sips):
        raise deadlock(done.sips)
    for report in done.sips:
        if report.broken_law:
            raise InvariantError(f"sip {report.sip} at the end of the run", report.broken_law)
    return done
