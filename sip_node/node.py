"""One LP process from its Hello to its exit: the only module that constructs its parts."""

import gc
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from runtime.ccl.config import CclConfig, CclFile
from runtime.ccl.ring_allocator import InstallPlans
from runtime.core.bench_registry import BenchOutcome
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import ProtocolError, RunAborted
from runtime.core.garbage_collection import collections_suspended
from runtime.core.imported_code import ImportRecorder
from runtime.core.section import config_hash
from runtime.core.wallclock import cpu_s
from runtime.model.schema import Topology
from runtime.wire.codec import PeerDecoder
from runtime.wire.control import Done, Failed, ModuleCode, Peers, RankActivity
from runtime.wire.environment import run_directory
from runtime.wire.reports import QueuePointers, SipReport
from sip_node.busy_report import busy_reports
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.chip_model import ChipModel
from sip_node.chip.failure import ProgramRaised, user_traceback
from sip_node.chip.kernel import PeLaunch, RunningKernel
from sip_node.chip.op_log import OpLog
from sip_node.chip.packet_rules import PacketRules
from sip_node.chip.partition import Partition
from sip_node.chip.pe.pe import Pe
from sip_node.control import Control
from sip_node.pdes.loop import LogicalProcess
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_board import with_board
from sip_node.pdes.transport_jitter import JitterTransport
from sip_node.pdes.transport_zmq import ZmqTransport
from sip_node.programs.activity import activity
from sip_node.programs.clock_warning import watch_clocks
from sip_node.programs.kernel_run import start_kernel
from sip_node.programs.program_stacks import ProgramStacks
from sip_node.programs.rank import Rank
from sip_node.programs.rank_environment import provide_variables
from sip_node.programs.user_program import Function, ProgramExited, Programs
from sip_node.reporter import LpObserver, Reporter


def main(
    control_endpoint: str,
    run_id: str,
    lp: int,
    recorder: ImportRecorder,
    function: Function | None = None,
    args: tuple[object, ...] = (),
) -> int:
    """Be LP `lp` of a run; returns the exit code.

    The coordinator receives a report for every way to end, and the code that `recorder` finds.
    """
    # Runs without the collector are faster. The result does not depend on it.
    gc.disable()
    control = Control(control_endpoint, run_id, lp)
    try:
        _run(control, run_id, lp, recorder, function, args)
    except RunAborted:
        return 1
    finally:
        control.close()
        # Python collects once more when it exits, among a million objects of the chips that the
        # exit of the process frees anyway.
        gc.freeze()
    return 0


def _run(
    control: Control,
    run_id: str,
    lp: int,
    recorder: ImportRecorder,
    function: Function | None,
    args: tuple[object, ...],
) -> None:
    directory = run_directory()
    endpoint = "tcp://127.0.0.1:*" if directory is None else f"ipc://{directory}/lp{lp}"
    channels: Transport
    channels = transport = ZmqTransport(lp, run_id, endpoint, control.socket)
    node: LpNode | None = None
    try:
        peers = control.hello(transport.endpoint, _news(recorder))
        programs = Programs(peers.job, function, args, recorder.record)
        channels = with_board(transport, directory, lp, peers.endpoints)
        node = LpNode(lp, peers, programs, channels, Reporter(control, lp))
        ranks = tuple(sip for sip in peers.sips_of_lp[lp] if sip < node.world_size)
        provide_variables(ranks, node.world_size, script=peers.job.kind == "script")
        watch_clocks(len(ranks))
        # The rules of the decoder follow from the topology, so the node is built first. Peers send
        # nothing before all LPs are ready.
        transport.connect(
            {peer: endpoint for peer, endpoint in enumerate(peers.endpoints) if peer != lp},
            node.decoder(run_id),
        )
        _record_named_code(recorder, programs, node.ccl_modules)
        control.ready(node.config_hash, _news(recorder))
        control.wait_start()
        with busy_reports(node.stretch_s, node.activities, control.send_busy):
            done = node.run()
        control.send(replace(done, code=_news(recorder)))
        control.finish()
    # The coordinator has the reason; it only lacks the rest of the trace.
    except RunAborted:
        if node is not None:
            node.flush_logs()
        raise
    except ProgramRaised as raised:
        _fail(control, lp, node, raised.rank, raised.error)
    except Exception as error:  # noqa: BLE001 - every cause is reported
        _fail(control, lp, node, -1, error)
    finally:
        channels.close()


def _record_named_code(
    recorder: ImportRecorder, programs: Programs, ccl_modules: Sequence[str]
) -> None:
    """Record the code that the run names: it is imported after the start, and compared before."""
    if programs.file is not None:
        recorder.record(*programs.file)
    if programs.module is not None:
        recorder.find(programs.module)
    for module in ccl_modules:
        recorder.find(module, programs.folders)


def _news(recorder: ImportRecorder) -> tuple[ModuleCode, ...]:
    return tuple(
        ModuleCode(module=module, file=code.file, sha256=code.sha256)
        for module, code in recorder.news().items()
    )


def _fail(
    control: Control, lp: int, node: "LpNode | None", rank: int, error: BaseException
) -> None:
    now_ps = 0
    if node is not None:
        now_ps = node.now_ps
        node.flush_logs()
    # A peer that broke the protocol is to blame, not this LP, which only received its message.
    blames_peer = isinstance(error, ProtocolError)
    exited = isinstance(error, ProgramExited)
    control.send(
        Failed(
            lp=lp,
            rank=rank,
            error=type(error).__name__,
            message=error.problem if blames_peer else str(error),
            # An exit is no error of Python, and shows no traceback there either.
            traceback="" if exited else user_traceback(error),
            time_ps=now_ps,
            sender=error.peer if blames_peer else "",
            exit_code=error.code if exited else 0,
        )
    )
    control.finish()


class LpNode:
    """LP `lp` with its chips and ranks. `transport` reaches the other LPs; None without any."""

    def __init__(
        self,
        lp: int,
        peers: Peers,
        programs: Programs,
        transport: Transport | None,
        observer: LpObserver,
    ) -> None:
        job = peers.job
        topology = Topology.decoded(job.topology)
        ccl = CclConfig("the ccl file", CclFile.decoded(job.ccl))
        self.config_hash = config_hash(topology, ccl.file)
        self.ccl_modules = ccl.modules
        self.world_size = ccl.world_size(topology.sips, job.arguments.get("algorithm"))
        self._lp, self._observer, self._verify = lp, observer, job.verify
        sips, lps = peers.sips_of_lp[lp], len(peers.sips_of_lp)
        self._stacks = ProgramStacks()
        # Those that have run a kernel.
        self._pes: dict[PeCoordinates, Pe] = {}
        self._spec = chip_spec(
            topology, data=job.data, remote_dma=job.remote_dma, start_kernel=self._start_kernel
        )
        self._partition = partition = Partition(peers.sips_of_lp, self._spec)
        sync = Sync(
            lp,
            lps,
            partition.channels_in(lp),
            partition.channels_out(lp),
            partition.forwarding_paths(lp),
        )
        logs = {
            sip: OpLog(
                partial(observer.trace, sip) if job.trace else None,
                partial(observer.written, sip) if job.verify else None,
                observer.transferred if job.ccl_trace else None,
            )
            for sip in sips
        }
        self._model = ChipModel(lp, partition, sync, self._spec, logs)
        # A seed for each LP, so that they draw different delays.
        if transport is not None and job.jitter_ms > 0:
            transport = JitterTransport(transport, job.jitter_ms / 1000, (job.jitter_seed, lp))
        # An LP without peers has no frames: it must not poll a socket in every round.
        self._loop = LogicalProcess(sync, self._model, transport if lps > 1 else None, self._round)
        plans = InstallPlans()
        self._ranks = [
            Rank(
                self._model.engine,
                self._model.chips[sip].host,
                sip,
                (topology, ccl),
                data=job.data,
                plans=plans,
                main=programs.of(sip, self.world_size),
            )
            for sip in sips
            if sip < self.world_size
        ]
        for rank in self._ranks:
            rank.state.world_size = self.world_size

    @property
    def now_ps(self) -> int:
        """The simulated time which this LP has reached."""
        return self._model.engine.now_ps

    @property
    def chips(self) -> Mapping[int, Chip]:
        """The chips by SIP."""
        return self._model.chips

    def stretch_s(self) -> float:
        """How long the program that runs has been computing; 0 if none runs."""
        return max((rank.state.clock.stretch_s for rank in self._ranks), default=0.0)

    def activities(self) -> tuple[RankActivity, ...]:
        """What the ranks of this LP have done. Another thread may call it."""
        return tuple(activity(rank) for rank in self._ranks)

    def decoder(self, run_id: str) -> PeerDecoder:
        """The decoder of what other LPs send, with the rules of this run."""
        lp_of = self._partition.lp_of
        return PeerDecoder(
            run_id,
            self._lp,
            [lp_of[sip] for sip in sorted(lp_of)],
            PacketRules(self._spec).fault,
        )

    def run(self) -> Done:
        """Run to the end of the run, or to a global deadlock, and report."""
        began_s = cpu_s()
        with collections_suspended():
            statistics = self._loop.run()
        if self._verify:
            self._report_contents()
        reports = tuple(self._report(sip) for sip in self.chips)
        # In a deadlock, packets of a transfer may wait in another LP; else all have come.
        if all(report.finished and not report.broken_law for report in reports):
            self._model.check_at_rest()
        return Done(
            lp=self._lp,
            sips=reports,
            events=statistics.events,
            rounds=statistics.rounds,
            messages=statistics.messages,
            null_messages=statistics.null_messages,
            blocked_s=statistics.blocked_s,
            busy_s=cpu_s() - began_s,
            ranks=self.activities(),
            skipped_steps=self._model.skipped_steps,
        )

    def flush_logs(self) -> None:
        """Report the records that the op logs still buffer: a run that fails keeps its trace."""
        for chip in self.chips.values():
            chip.log.flush()

    def _start_kernel(self, coordinates: PeCoordinates, launch: PeLaunch) -> RunningKernel:
        pe = self._pes.get(coordinates)
        if pe is None:
            pe = self._pes[coordinates] = self.chips[coordinates.sip].pe(coordinates)
        return start_kernel(pe, launch, self._stacks)

    def _report_contents(self) -> None:
        for sip, chip in self.chips.items():
            for address, data in chip.contents():
                self._observer.contents(sip, address, data)

    def _report(self, sip: int) -> SipReport:
        # A SIP beyond the world size has no rank: its chip only forwards.
        chip, rank = self.chips[sip], next((r for r in self._ranks if r.rank == sip), None)
        return SipReport(
            sip=sip,
            digest=chip.log.digest(chip.memories),
            time_ps=chip.log.last_ps,
            finished=rank is None or rank.finished,
            outcome=rank.outcome if rank and isinstance(rank.outcome, BenchOutcome) else None,
            counters=chip.counters(),
            blocked=chip.blocked(),
            waiting_for="" if rank is None else rank.waiting_for,
            broken_law=chip.broken_law(),
            queues=_queues(chip),
            transfers=chip.host.open_transfers(),
            stalled=chip.stalled(),
        )

    def _round(self) -> None:
        self._observer.round(self.now_ps, self._loop, self.activities)


def _queues(chip: Chip) -> tuple[QueuePointers, ...]:
    """All queues of the PEs that wait for a peer, and of other PEs the queues not at rest."""
    blocked = {(pe.cube, pe.pe) for pe in chip.blocked()}
    return tuple(
        queue
        for pe in chip.pes
        # A queue at rest is no part of a deadlock, and a SIP may have thousands.
        if not pe.ipcq.at_rest or (pe.coordinates.cube, pe.coordinates.pe) in blocked
        for queue in pe.ipcq.pointers()
        if not queue.at_rest or (queue.cube, queue.pe) in blocked
    )
