"""One LP process, from the first word to the coordinator to the last: the only place that constructs."""

import gc
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from runtime.bench_registry import BenchOutcome
from runtime.ccl.config import parse_ccl
from runtime.config_file import config_hash
from runtime.errors import RunAborted
from runtime.hardware.topology import parse_topology
from runtime.trace import OpRecord
from runtime.wallclock import cpu_s
from runtime.wire.codec import encode_records
from runtime.wire.environment import run_directory
from runtime.wire.messages import Done, Failed, Peers, SipReport, TraceChunk
from sip_node.chip import Blueprint, Chip
from sip_node.chip_model import ChipModel, Partition
from sip_node.control import Control
from sip_node.failure import ProgramRaised, user_traceback
from sip_node.lp import Figures, LogicalProcess
from sip_node.op_log import OpLog
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_jitter import JitterTransport
from sip_node.pdes.transport_zmq import ZmqTransport
from sip_node.rank import Rank
from sip_node.user_program import Function, Programs


def main(control_endpoint: str, run_id: str, lp: int, function: Function | None = None, args: tuple[object, ...] = ()) -> int:
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


def _run(control: Control, run_id: str, lp: int, function: Function | None, args: tuple[object, ...]) -> None:
    directory = run_directory()
    endpoint = "tcp://127.0.0.1:*" if directory is None else f"ipc://{directory}/lp{lp}"
    transport = ZmqTransport(lp, run_id, endpoint, control.socket)
    node: Node | None = None
    try:
        peers = control.hello(transport.endpoint)
        transport.connect({peer: where for peer, where in enumerate(peers.endpoints) if peer != lp})
        programs = Programs(peers.job, function, args)
        node = Node(lp, peers, programs, transport, _Reporter(control, lp))
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


def _fail(control: Control, lp: int, node: "Node | None", rank: int, error: BaseException) -> None:
    now_ps = 0
    if node is not None:
        now_ps = node.now_ps
        node.flush_logs()
    control.send(Failed(lp, rank, type(error).__name__, str(error), user_traceback(error), now_ps))
    control.finish()


class Observer(Protocol):
    """Who a node tells how far it is."""

    def round(self, time_ps: int, figures: Figures) -> None:
        """Called once a round of the loop; what it raises ends the run."""
        ...

    def trace(self, sip: int, records: list[OpRecord]) -> None:
        """The next records of the op log of a SIP."""
        ...


class _Reporter:
    """Tells the coordinator."""

    def __init__(self, control: Control, lp: int) -> None:
        self._control, self._lp = control, lp

    def round(self, time_ps: int, figures: Figures) -> None:
        self._control.report_status(time_ps, figures.events, figures.blocked_s)
        self._control.check()

    def trace(self, sip: int, records: list[OpRecord]) -> None:
        self._control.send(TraceChunk(self._lp, sip, encode_records(records)))


class Node:
    """LP `lp` with its chips and ranks. `transport` reaches the other LPs; None where there are none."""

    def __init__(self, lp: int, peers: Peers, programs: Programs, transport: Transport | None, observer: Observer) -> None:
        job = peers.job
        topology = parse_topology(job.topology_yaml, "topology", job.sips)
        ccl = parse_ccl(job.ccl_yaml, "ccl")
        self.config_hash = config_hash(topology, ccl.file)
        self._lp, self._observer = lp, observer
        sips, lps = peers.sips_of_lp[lp], len(peers.sips_of_lp)
        plan = Blueprint.of(topology, ccl, data=job.data, remote_dma=job.remote_dma)
        partition = Partition(peers.sips_of_lp, plan.sips, topology.sip.io_chiplet.noc.overhead_ns)
        sync = Sync(lp, lps, partition.channels_in(lp), partition.channels_out(lp))
        logs = {sip: OpLog(partial(observer.trace, sip) if job.trace else None) for sip in sips}
        self._model = ChipModel(lp, partition, sync, plan, logs)
        if transport is not None and job.jitter_ms > 0:
            transport = JitterTransport(transport, job.jitter_ms / 1000, (job.jitter_seed, lp))
        self._loop = LogicalProcess(sync, self._model, transport if lps > 1 else None, self._round)
        self._ranks = [
            Rank(self._model.engine, self._model.chips[sip].host, sip, (topology, ccl), data=job.data, main=programs.of(sip))
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
        reports = tuple(self._report(rank) for rank in self._ranks)
        return Done(
            self._lp, reports, figures.events, figures.rounds, figures.messages, figures.null_messages, figures.blocked_s,
            cpu_s() - began_s,
        )  # fmt: skip

    def flush_logs(self) -> None:
        """Hand over what the op logs hold back: a run that fails keeps what was traced."""
        for chip in self.chips.values():
            chip.log.flush()

    def _report(self, rank: Rank) -> SipReport:
        chip = self.chips[rank.rank]
        outcome = rank.outcome if isinstance(rank.outcome, BenchOutcome) else None
        return SipReport(
            rank.rank, chip.log.digest(chip.memories), chip.log.last_ps, rank.finished, outcome, chip.counters(),
            chip.blocked(), rank.waiting_for, chip.broken_law(),
        )  # fmt: skip

    def _round(self) -> None:
        self._observer.round(self.now_ps, self._loop.figures)
