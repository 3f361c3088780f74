"""The chips and ranks of an LP: the only module that constructs them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from runtime.ccl.config import CclConfig, CclFile
from runtime.ccl.ring_allocator import InstallPlans
from runtime.core.bench_registry import BenchOutcome
from runtime.core.config.section import config_hash
from runtime.core.coordinates import PeCoordinates
from runtime.core.garbage_collection import collections_suspended
from runtime.core.wallclock import cpu_s
from runtime.model.schema.topology_schema import Topology
from runtime.wire.codec import PeerDecoder
from runtime.wire.control import Done, Job, Peers, RankActivity
from runtime.wire.environment import fold_requested
from runtime.wire.reports import BlockedPe, DevicePrint, QueuePointers, SipReport, SlotTransfer
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.chip_model import ChipModel
from sip_node.chip.kernel import PeLaunch, RunningKernel
from sip_node.chip.partition import Partition
from sip_node.chip.pe.pe import Pe
from sip_node.chip.ports.packet_rules import PacketRules
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.pdes.loop import LogicalProcess
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import JitterTransport, Transport
from sip_node.programs.lists.command_lists import CommandLists
from sip_node.programs.lists.kernel_start import KernelStart
from sip_node.programs.rank import Rank
from sip_node.user_program import Programs, rank_place


class LpObserver(Protocol):
    """Receives the progress of an LP and what it records."""

    def round(self, time_ps: int, loop: LogicalProcess, programs: "LpNode") -> None:
        """Called once a round of the loop; an error that it raises ends the run."""
        ...

    def trace(self, sip: int, records: bytes) -> None:
        """The next records of the op log of a SIP, as `codec.decode_records` reads them."""
        ...

    def recorded(self, sip: int, table: str, rows: bytes, texts: tuple[str, ...]) -> None:
        """The next rows of a table of a SIP, and its next texts, in a run with records."""
        ...

    def written(self, sip: int, data: bytes) -> None:
        """The next bytes which the host of a SIP wrote, in a run that will be verified."""
        ...

    def contents(self, sip: int, address: int, data: bytes) -> None:
        """Bytes of a memory at the end of a run that will be verified."""
        ...

    def transferred(self, transfer: SlotTransfer) -> None:
        """A kernel has sent or received a slot, in a run with `ccl_trace`."""
        ...

    def printed(self, line: DevicePrint) -> None:
        """A kernel has printed a line."""
        ...


class LpNode:
    """The LP that `peers` was sent to, with its chips and ranks.

    `transport(peers)` reaches `peers`, the LPs with which this one exchanges anything; None in a
    run with one LP.
    """

    def __init__(
        self,
        peers: Peers,
        programs: Programs,
        transport: Callable[[Sequence[int]], Transport] | None,
        observer: LpObserver,
    ) -> None:
        lp, job = peers.lp, peers.job
        topology = Topology.decoded(job.topology)
        ccl = CclConfig("the ccl file", CclFile.decoded(job.ccl))
        self.config_hash = config_hash(topology, ccl.file)
        self.ccl_modules = ccl.modules
        self.world_size = ccl.world_size(topology.sips, job.arguments.get("algorithm"))
        self._lp, self._observer, self._verify = lp, observer, job.verify
        sips, lps = peers.sips_of_lp[lp], len(peers.sips_of_lp)
        self._kernels = KernelStart(CommandLists() if fold_requested() else None)
        # Those that have run a kernel.
        self._pes: dict[PeCoordinates, Pe] = {}
        self._spec = chip_spec(
            topology,
            data=job.data,
            remote_dma=job.remote_dma,
            start_kernel=self._start_kernel,
            launch_keys=self._kernels,
        )
        self._partition = partition = Partition(peers.sips_of_lp, self._spec)
        sync = Sync(
            lp,
            lps,
            partition.channels_in(lp),
            partition.channels_out(lp),
            partition.forwarding_paths(lp),
            peers.hosts,
        )
        logs = {sip: _log_of(sip, job, observer) for sip in sips}
        self._model = ChipModel(lp, partition, sync, self._spec, logs)
        self.peers = partition.peers(lp, peers.hosts)
        # An LP without peers has no frames: it must not poll a socket in every round.
        channels = None if transport is None or lps == 1 else transport(self.peers)
        # A seed for each LP, so that they draw different delays.
        if channels is not None and job.jitter_ms > 0:
            channels = JitterTransport(channels, job.jitter_ms / 1000, (job.jitter_seed, lp))
        self._loop = LogicalProcess(sync, self._model, channels, self._round)
        plans = InstallPlans()
        self._ranks = [
            Rank(
                self._model.engine,
                self._model.chips[sip].host,
                sip,
                (topology, ccl),
                data=job.data,
                plans=plans,
                main=programs.of(rank_place(peers, sip, self.world_size)),
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
        """The time for which the running program has been computing; 0 if none runs."""
        return max((rank.state.clock.stretch_s for rank in self._ranks), default=0.0)

    def activities(self) -> tuple[RankActivity, ...]:
        """The activity of the ranks of this LP. Another thread may call it."""
        return tuple(rank.activity for rank in self._ranks)

    def decoder(self) -> PeerDecoder:
        """The decoder of what other LPs send, with the rules of this run."""
        lp_of = self._partition.lp_of
        return PeerDecoder(
            self._lp, [lp_of[sip] for sip in sorted(lp_of)], PacketRules(self._spec).fault
        )

    def run(self) -> Done:
        """Run to the end of the run, or to a global deadlock, and report."""
        began_s = cpu_s()
        with collections_suspended():
            statistics = self._loop.run()
        self.flush_logs()
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
            kernels=self._kernels.started,
            listed_kernels=self._kernels.listed,
            repeated_kernels=self._kernels.repeated,
        )

    def close(self) -> None:
        """End all programs that wait, for a process that goes on after a run which has failed."""
        for rank in self._ranks:
            rank.close()
        self._kernels.close()

    def flush_logs(self) -> None:
        """Report the records that are still buffered: a run that fails keeps its trace."""
        for chip in self.chips.values():
            chip.log.flush()
            if chip.loads is not None:
                chip.loads.report()
            if chip.log.recorder is not None:
                chip.log.recorder.flush()

    def _start_kernel(self, coordinates: PeCoordinates, launch: PeLaunch) -> RunningKernel:
        pe = self._pes.get(coordinates)
        if pe is None:
            pe = self._pes[coordinates] = self.chips[coordinates.sip].pe(coordinates)
        return self._kernels.start(pe, launch)

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
            # A command without an operation, such as an event, is in no op log.
            time_ps=max(chip.log.last_ps, chip.host.last_answer_ps),
            finished=rank is None or rank.finished,
            outcome=rank.outcome if rank and isinstance(rank.outcome, BenchOutcome) else None,
            counters=chip.counters(),
            blocked=chip.blocked(),
            waiting_for="" if rank is None else rank.waiting_for,
            broken_law=chip.broken_law(),
            queues=_queues(chip),
            transfers=chip.host.open_transfers(),
            stalled=chip.stalled(),
            ranges=tuple(rank.ranges) if rank and rank.finished else (),
        )

    def _round(self) -> None:
        self._observer.round(self.now_ps, self._loop, self)

    def oldest_wait(self) -> BlockedPe | None:
        """The kernel of this LP that has waited longest for a peer."""
        waits = [wait for chip in self.chips.values() if (wait := chip.oldest_wait()) is not None]
        return min(waits, key=lambda wait: wait.since_ps, default=None)


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


def _log_of(sip: int, job: Job, observer: LpObserver) -> OpLog:
    return OpLog(
        partial(observer.trace, sip) if job.trace else None,
        partial(observer.written, sip) if job.verify else None,
        observer.transferred if job.ccl_trace else None,
        observer.printed,
        RunRecorder(partial(observer.recorded, sip)) if job.records else None,
    )
