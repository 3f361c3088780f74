"""An LP without a chip, which follows a script of control messages: it tests the coordinator alone.

It starts like `python -m sip_node`, after one behaviour for each LP:
`fake_lp.py normal,raises --connect E --run-id I --lp 1`.
"""

import os
import signal
import sys
from collections.abc import Callable
from hashlib import sha256
from threading import Event

import zmq

from runtime.ccl.config import parse_ccl
from runtime.core.bench_registry import BenchOutcome, PerfRow
from runtime.core.config_file import config_hash
from runtime.core.errors import RunAborted
from runtime.core.trace import OpRecord
from runtime.model.topology import parse_topology
from runtime.wire.codec import encode_peer, encode_records
from runtime.wire.control import (
    Done,
    Failed,
    Hello,
    Job,
    MemoryContents,
    Peers,
    Status,
    TraceChunk,
    Written,
)
from runtime.wire.frames import Frame, Message
from runtime.wire.packets import PacketHeader, PacketKind
from runtime.wire.reports import BlockedPe, SipReport
from sip_node import lifeline, node
from sip_node.control import Control

TIME_PS = 5_000
EVENTS = 1000


def expected_hash(job: Job) -> str:
    topology = parse_topology(job.topology_yaml, "topology", job.sips)
    return config_hash(topology, parse_ccl(job.ccl_yaml, "ccl").file)


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

    def report(self, sip: int, *, finished: bool = True) -> SipReport:
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
        outcome = BenchOutcome(label="fake", ok=16, wrong=0, rows=(row,)) if finished else None
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

    def done(self, *, finished: bool = True, sips: tuple[int, ...] | None = None) -> None:
        reports = tuple(self.report(sip, finished=finished) for sip in sips or self.sips)
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


def normal(lp: FakeLp) -> int:
    lp.start()
    lp.trace()
    lp.done()
    return lp.finish()


def raises(lp: FakeLp) -> int:
    lp.start()
    lp.trace()
    text = "Traceback (most recent call last):\nValueError: rank refuses"
    lp.control.send(
        Failed(
            lp=lp.lp,
            rank=lp.sips[0],
            error="ValueError",
            message="rank refuses",
            traceback=text,
            time_ps=TIME_PS,
        )
    )
    lp.control.close()
    return 1


def refuses_a_flag(lp: FakeLp, error: str = "UsageError") -> int:
    lp.start()
    lp.control.send(
        Failed(
            lp=lp.lp,
            rank=lp.sips[0],
            error=error,
            message="unknown dtype 'f99'",
            traceback="Traceback",
            time_ps=0,
        )
    )
    return lp.finish()


def refuses_a_key(lp: FakeLp) -> int:
    return refuses_a_flag(lp, "ConfigError")


def prints(lp: FakeLp) -> int:
    sys.stdout.write("first\nwithout end")
    sys.stderr.write("a warning")
    return normal(lp)


def exits(lp: FakeLp) -> int:
    lp.start()
    lp.control.close()
    return 3


def dies(lp: FakeLp) -> int:
    lp.start()
    lp.control.close()
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def dies_before_hello(_: FakeLp) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def hangs(lp: FakeLp) -> int:
    lp.start()
    Event().wait()
    return 0


def hangs_stubbornly(lp: FakeLp) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return hangs(lp)


def never_joins(_: FakeLp) -> int:
    Event().wait()
    return 0


def waits(lp: FakeLp) -> int:
    """Follows the protocol, but its run does not end."""
    lp.start()
    lp.trace()
    while True:
        lp.control.check()
        lp.report_status()
        lp.control.socket.poll(100)


def malformed(lp: FakeLp) -> int:
    lp.start()
    lp.control.socket.send(b"\xc1 not msgpack")
    return lp.finish()


def malformed_trace(lp: FakeLp) -> int:
    lp.start()
    lp.control.send(TraceChunk(lp.lp, lp.sips[0], b"\xc1"))
    return lp.finish()


def sends_as_another_lp(lp: FakeLp) -> int:
    lp.start()
    lp.control.send(Status(lp=lp.lp + 1, time_ps=TIME_PS, events=EVENTS, blocked_s=0.0))
    return lp.finish()


def reports_foreign_memories(lp: FakeLp) -> int:
    lp.start()
    lp.control.send(MemoryContents(lp.lp, lp.sips[0] + 1, 0, b"x"))
    return lp.finish()


def writes_for_foreign_hosts(lp: FakeLp) -> int:
    lp.start()
    lp.control.send(Written(lp.lp, lp.sips[0] + 1, b"x"))
    return lp.finish()


def reports_foreign_sips(lp: FakeLp) -> int:
    lp.start()
    lp.done(sips=(lp.sips[0] + 1,))
    return lp.finish()


def brings_a_stranger(lp: FakeLp) -> int:
    stranger = Control(lp.endpoint, "another run", lp.lp)
    try:
        stranger.hello("ipc://stranger")
    except RunAborted as refusal:
        refused = "another run" in refusal.reason
    else:
        refused = False
    stranger.close()
    return normal(lp) if refused else 1


def wrong_protocol(lp: FakeLp) -> int:
    lp.control.send(Hello(protocol=99, run_id=lp.run_id, lp=lp.lp, pid=os.getpid(), endpoint=""))
    return lp.finish()


def wrong_hash(lp: FakeLp) -> int:
    lp.join()
    lp.control.ready("0123456789abcdef")
    lp.control.wait_start()
    return lp.finish()


def sends_a_wrong_packet(lp: FakeLp) -> int:
    """A packet from SIP 1 for a SIP that does not exist, by way of SIP 0 on LP 0."""
    peers = lp.join()
    lp.control.ready(expected_hash(peers.job))
    lp.control.wait_start()
    packet = PacketHeader(
        kind=PacketKind.IPCQ_CREDIT,
        source_sip=1,
        source_node=0,
        sip=200,
        node=0,
        size=64,
        address=0,
        tag=0,
        total=0,
        last=True,
        sent_ps=0,
        tail_ps=0,
        flow=None,
        rows=None,
        begin=0,
        element=0,
        call="",
    )
    frame = Frame((10**6,), 0, (Message(time_ps=10**6, source=1, target=0, seq=0, body=packet),))
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.connect(peers.endpoints[0])
        socket.send_multipart(encode_peer(lp.run_id, lp.lp, frame))
        return lp.finish()


def deadlocks(lp: FakeLp) -> int:
    lp.start()
    lp.done(finished=False)
    return lp.finish()


def ends_badly(lp: FakeLp) -> int:
    return normal(lp) + 5


BEHAVIOURS: dict[str, Callable[[FakeLp], int]] = {
    behaviour.__name__: behaviour
    for behaviour in (
        normal,
        raises,
        refuses_a_flag,
        refuses_a_key,
        prints,
        exits,
        dies,
        dies_before_hello,
        hangs,
        hangs_stubbornly,
        never_joins,
        waits,
        malformed,
        malformed_trace,
        sends_as_another_lp,
        reports_foreign_memories,
        writes_for_foreign_hosts,
        reports_foreign_sips,
        brings_a_stranger,
        wrong_protocol,
        wrong_hash,
        deadlocks,
        ends_badly,
        sends_a_wrong_packet,
    )
}


def be(behaviour: str, endpoint: str, run_id: str, lp: int) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline.follow_parent()
    if behaviour == "real":
        return node.main(endpoint, run_id, lp)
    fake = FakeLp(endpoint, run_id, lp)
    try:
        return BEHAVIOURS[behaviour](fake)
    except RunAborted:
        fake.control.close()
        return 1


def enter(
    endpoint: str,
    run_id: str,
    lp: int,
    function: Callable[..., object] | None,
    args: tuple[object, ...],
) -> int:
    """The entry of a spawned child: calls the function for each of its ranks."""
    assert function is not None
    lifeline.follow_parent()
    fake = FakeLp(endpoint, run_id, lp)
    fake.start()
    for sip in fake.sips:
        function(sip, *args)
    fake.done()
    return fake.finish()


if __name__ == "__main__":
    words = sys.argv[1:]
    value = dict(zip(words[1::2], words[2::2], strict=True))
    number = int(value["--lp"])
    behaviours = words[0].split(",")
    sys.exit(
        be(
            behaviours[min(number, len(behaviours) - 1)],
            value["--connect"],
            value["--run-id"],
            number,
        )
    )
