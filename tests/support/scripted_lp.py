"""One end of the control protocol, without a chip behind it: what the fake LPs are made of."""

from hashlib import sha256

from runtime.ccl.config import CclFile
from runtime.core.bench_registry import BenchOutcome, PerfRow
from runtime.core.config.section import config_hash
from runtime.core.trace import OpRecord
from runtime.model.schema.topology_schema import Topology
from runtime.wire.codec import encode_records
from runtime.wire.control import (
    Done,
    Job,
    Peers,
    Status,
    TraceChunk,
)
from runtime.wire.reports import BlockedPe, SipReport
from sip_node.control import Control

TIME_PS = 5_000
EVENTS = 1000


def expected_hash(job: Job) -> str:
    return config_hash(Topology.decoded(job.topology), CclFile.decoded(job.ccl))


def digest_of(sip: int) -> str:
    return sha256(str(sip).encode()).hexdigest()


class FakeLp:
    def __init__(self, endpoint: str, run_id: str, lp: int) -> None:
        self.endpoint, self.run_id, self.lp = endpoint, run_id, lp
        self.control = Control(endpoint, run_id, lp)
        self.sips: tuple[int, ...] = ()

    def join(self) -> Peers:
        peers = self.control.hello(f"ipc://lp{self.lp}")
        self.sips = peers.sips_of_lp[self.lp]
        return peers

    def start(self) -> None:
        self.control.ready(expected_hash(self.join().job))
        self.control.wait_start()
        self.report_status()

    def report_status(self) -> None:
        if self.control.status_is_due():
            self.control.report_status(
                Status(
                    lp=self.lp,
                    time_ps=TIME_PS,
                    events=EVENTS,
                    blocked_s=0.0,
                    next_ps=2 * TIME_PS,
                    safe_ps=TIME_PS,
                    waits_for=self.lp ^ 1,
                )
            )

    def trace(self) -> None:
        for sip in self.sips:
            sent = OpRecord(
                engine="ucie",
                name="send",
                start_ps=100 * sip,
                end_ps=100 * sip + 50,
                nbytes=64,
                flow=(sip, sip + 1, 0),
            )
            received = OpRecord(
                engine="ucie",
                name="recv",
                start_ps=100,
                end_ps=150,
                flow=(sip - 1, sip, 0),
                flow_end=True,
            )
            self.control.send(TraceChunk(self.lp, sip, encode_records([sent, received])))

    def report(self, sip: int, *, finished: bool = True, label: str = "fake") -> SipReport:
        row = PerfRow(
            size_bytes=1024,
            count=256,
            dtype="f32",
            redop="sum",
            time_ps=2_000_000 + sip,
            algbw_gbs=0.5,
            busbw_gbs=0.5,
            wrong=0,
        )
        blocked = (
            ()
            if finished
            else (
                BlockedPe(
                    sip=sip,
                    cube=3,
                    pe=1,
                    kernel="ring",
                    operation="recv",
                    direction="E",
                    peer=(sip ^ 1, 3, 1),
                    since_ps=TIME_PS,
                ),
            )
        )
        waiting_for = "" if finished else "all_reduce"
        outcome = BenchOutcome(label=label, ok=16, wrong=0, rows=(row,)) if finished else None
        return SipReport(
            sip=sip,
            digest=digest_of(sip),
            time_ps=TIME_PS,
            finished=finished,
            outcome=outcome,
            counters={"bytes": 64},
            blocked=blocked,
            waiting_for=waiting_for,
        )

    def done(
        self,
        *,
        finished: bool = True,
        sips: tuple[int, ...] | None = None,
        label: str = "fake",
    ) -> None:
        reports = tuple(
            self.report(sip, finished=finished, label=label) for sip in sips or self.sips
        )
        self.control.send(
            Done(
                lp=self.lp,
                sips=reports,
                events=EVENTS,
                rounds=10,
                messages=20,
                null_messages=30,
                blocked_s=0.5,
                busy_s=1.5,
            )
        )

    def finish(self) -> int:
        self.control.finish()
        self.control.close()
        return 0
