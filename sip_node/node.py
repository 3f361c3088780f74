"""One LP process, from the first word to the coordinator to the last: the only place that constructs."""

import gc
import sys
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from runtime.ccl.config import parse_checked_ccl
from runtime.core.bench_registry import BenchOutcome
from runtime.core.config_file import config_hash
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import RunAborted
from runtime.core.trace import OpRecord
from runtime.core.wallclock import cpu_s
from runtime.model.topology import parse_topology
from runtime.wire.codec import encode_records
from runtime.wire.environment import run_directory
from runtime.wire.messages import (
    CHUNK_BYTES,
    Done,
    Failed,
    MemoryContents,
    Peers,
    QueuePointers,
    SipReport,
    SlotTransfer,
    Status,
    TraceChunk,
    Transferred,
    Written,
)
from sip_node.chip.chip import Chip, ChipSpec
from sip_node.chip.chip_model import ChipModel
from sip_node.chip.failure import ProgramRaised, user_traceback
from sip_node.chip.kernel import PeLaunch, RunningKernel
from sip_node.chip.op_log import OpLog
from sip_node.chip.partition import Partition
from sip_node.control import Control
from sip_node.pdes.loop import LogicalProcess
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_jitter import JitterTransport
from sip_node.pdes.transport_zmq import ZmqTransport
from sip_node.programs.kernel_run import start_kernel
from sip_node.programs.rank import Rank
from sip_node.programs.user_program import Function, Programs


def main(
    control_endpoint: str,
    run_id: str,
    lp: int,
    function: Function | None = None,
    args: tuple[object, ...] = (),
) -> int:
    """Be LP `lp` of a run; returns the exit code. The coordinator is told of every way in which it ends."""
    # Collection would free tensors in cycles at moments that depend on how SIPs are packed; without it runs are also faster.
    gc.disable()
    control = Control(control_endpoint, run_id, lp)
    try:
        _run(control, run_id, lp, function, args)
    except RunAborted:
        return 1
    finally:
        control.close()
    return 0


def _run(
    control: Control, run_id: str, lp: int, function: Function | None, args: tuple[object, ...]
) -> None:
    directory = run_directory()
    endpoint = "tcp://127.0.0.1:*" if directory is None else f"ipc://{directory}/lp{lp}"
    transport = ZmqTransport(lp, run_id, endpoint, control.socket)
    node: LpNode | None = None
    try:
        peers = control.hello(transport.endpoint)
        transport.connect({peer: where for peer, where in enumerate(peers.endpoints) if peer != lp})
        programs = Programs(peers.job, function, args)
        node = LpNode(lp, peers, programs, transport, _Reporter(control, lp))
        control.ready(node.config_hash)
        control.wait_start()
        control.send(node.run())
        control.finish()
    except RunAborted:
        if node is not None:
            node.flush_logs()
        raise
    except ProgramRaised as raised:
        _fail(control, lp, node, raised.rank, raised.error)
    except Exception as error:  # noqa: BLE001 - whatever it is, the coordinator has to hear of it
        _fail(control, lp, node, -1, error)
    finally:
        transport.close()


def _fail(
    control: Control, lp: int, node: "LpNode | None", rank: int, error: BaseException
) -> None:
    now_ps = 0
    if node is not None:
        now_ps = node.now_ps
        node.flush_logs()
    control.send(Failed(lp, rank, type(error).__name__, str(error), user_traceback(error), now_ps))
    control.finish()


class Observer(Protocol):
    """Who a node tells how far it is."""

    def round(self, time_ps: int, loop: LogicalProcess) -> None:
        """Called once a round of the loop; what it raises ends the run."""
        ...

    def trace(self, sip: int, records: list[OpRecord]) -> None:
        """The next records of the op log of a SIP."""
        ...

    def written(self, sip: int, data: bytes) -> None:
        """What the host of a SIP wrote next; told if the job is to be verified."""
        ...

    def contents(self, sip: int, address: int, data: bytes) -> None:
        """Bytes of a memory at the end of the run; told if the job is to be verified."""
        ...

    def transferred(self, transfer: SlotTransfer) -> None:
        """A kernel has sent or received a slot; told if the job is to be traced so."""
        ...


class _Reporter:
    """Tells the coordinator."""

    def __init__(self, control: Control, lp: int) -> None:
        self._control, self._lp = control, lp

    def round(self, time_ps: int, loop: LogicalProcess) -> None:
        if self._control.status_is_due():
            figures = loop.figures
            status = Status(
                self._lp,
                time_ps,
                figures.events,
                figures.blocked_s,
                loop.next_ps,
                loop.safe_ps,
                loop.waits_for,
            )
            self._control.report_status(status)
        self._control.check()

    def trace(self, sip: int, records: list[OpRecord]) -> None:
        self._control.send(TraceChunk(self._lp, sip, encode_records(records)))

    def written(self, sip: int, data: bytes) -> None:
        for start in range(0, len(data), CHUNK_BYTES):
            self._control.send(Written(self._lp, sip, data[start : start + CHUNK_BYTES]))

    def contents(self, sip: int, address: int, data: bytes) -> None:
        for start in range(0, len(data), CHUNK_BYTES):
            self._control.send(
                MemoryContents(self._lp, sip, address + start, data[start : start + CHUNK_BYTES])
            )

    def transferred(self, transfer: SlotTransfer) -> None:
        show(transfer)
        self._control.send(Transferred(self._lp, transfer))


def show(transfer: SlotTransfer) -> None:
    """Print a line to the standard error: several LPs share a terminal, so it begins with the SIP."""
    sys.stderr.write(f"[sip {transfer.sip}] {transfer}\n")


class LpNode:
    """LP `lp` with its chips and ranks. `transport` reaches the other LPs; None where there are none."""

    def __init__(
        self,
        lp: int,
        peers: Peers,
        programs: Programs,
        transport: Transport | None,
        observer: Observer,
    ) -> None:
        job = peers.job
        topology = parse_topology(job.topology_yaml, "topology", job.sips)
        ccl = parse_checked_ccl(job.ccl_yaml, "the ccl file")
        self.config_hash = config_hash(topology, ccl.file)
        self._lp, self._observer, self._verify = lp, observer, job.verify
        sips, lps = peers.sips_of_lp[lp], len(peers.sips_of_lp)
        plan = ChipSpec.of(
            topology, data=job.data, remote_dma=job.remote_dma, start_kernel=self._start_kernel
        )
        partition = Partition(peers.sips_of_lp, plan.sips, topology.sip.io_chiplet.noc.overhead_ns)
        sync = Sync(
            lp, lps, partition.channels_in(lp), partition.channels_out(lp), partition.transits(lp)
        )
        logs = {
            sip: OpLog(
                partial(observer.trace, sip) if job.trace else None,
                partial(observer.written, sip) if job.verify else None,
                observer.transferred if job.ccl_trace else None,
            )
            for sip in sips
        }
        self._model = ChipModel(lp, partition, sync, plan, logs)
        if transport is not None and job.jitter_ms > 0:
            transport = JitterTransport(transport, job.jitter_ms / 1000, (job.jitter_seed, lp))
        self._loop = LogicalProcess(sync, self._model, transport if lps > 1 else None, self._round)
        self._ranks = [
            Rank(
                self._model.engine,
                self._model.chips[sip].host,
                sip,
                (topology, ccl),
                data=job.data,
                main=programs.of(sip),
            )
            for sip in sips
        ]

    @property
    def now_ps(self) -> int:
        """The simulated time at which this LP stands."""
        return self._model.engine.now_ps

    @property
    def chips(self) -> Mapping[int, Chip]:
        """The chips by SIP."""
        return self._model.chips

    def run(self) -> Done:
        """Run to the end of the run, or to a global deadlock, and report."""
        began_s = cpu_s()
        figures = self._loop.run()
        if self._verify:
            self._tell_contents()
        reports = tuple(self._report(rank) for rank in self._ranks)
        return Done(
            self._lp,
            reports,
            figures.events,
            figures.rounds,
            figures.messages,
            figures.null_messages,
            figures.blocked_s,
            cpu_s() - began_s,
        )

    def flush_logs(self) -> None:
        """Hand over what the op logs hold back: a run that fails keeps what was traced."""
        for chip in self.chips.values():
            chip.log.flush()

    def _start_kernel(self, coordinates: PeCoordinates, launch: PeLaunch) -> RunningKernel:
        return start_kernel(self.chips[coordinates.sip].pe(coordinates), launch)

    def _tell_contents(self) -> None:
        for sip, chip in self.chips.items():
            for address, data in chip.contents():
                self._observer.contents(sip, address, data)

    def _report(self, rank: Rank) -> SipReport:
        chip = self.chips[rank.rank]
        outcome = rank.outcome if isinstance(rank.outcome, BenchOutcome) else None
        return SipReport(
            rank.rank,
            chip.log.digest(chip.memories),
            chip.log.last_ps,
            rank.finished,
            outcome,
            chip.counters(),
            chip.blocked(),
            rank.waiting_for,
            chip.broken_law(),
            _queues(chip),
        )

    def _round(self) -> None:
        self._observer.round(self.now_ps, self._loop)


def _queues(chip: Chip) -> tuple[QueuePointers, ...]:
    """All queues of the PEs that wait for a peer, and of the others those that are not at rest."""
    blocked = {(pe.cube, pe.pe) for pe in chip.blocked()}
    told = [
        pe
        for pe in chip.pes
        if not pe.ipcq.at_rest or (pe.coordinates.cube, pe.coordinates.pe) in blocked
    ]
    return tuple(
        queue
        for pe in told
        for queue in pe.ipcq.pointers()
        if not queue.at_rest or (queue.cube, queue.pe) in blocked
    )
