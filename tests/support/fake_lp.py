"""An LP without a chip, which follows a script of control messages: it tests the coordinator alone.

It starts like `python -m sip_node`, after one behaviour for each LP:
`fake_lp.py normal,raises --connect E --run-id-fd N --lp 1`.
"""

import os
import signal
import sys
from collections.abc import Callable
from threading import Event

import zmq

from runtime.core.code.imported_code import ImportRecorder
from runtime.core.errors import RunAborted
from runtime.wire.codec import encode_peer
from runtime.wire.control import (
    Failed,
    Hello,
    MemoryContents,
    Status,
    TraceChunk,
    Written,
)
from runtime.wire.environment import run_directory
from runtime.wire.fields import MAX_CONTROL_BYTES
from runtime.wire.frames import Frame
from runtime.wire.packets import PacketKind
from runtime.wire.passwords import Passwords
from runtime.wire.run_id import read_run_id
from sip_node import lifeline
from sip_node.control import Control
from sip_node.lifeline import Ending
from sip_node.pdes.promise_board import PromiseBoard
from tests.support.packets import packet_run, run_message, transfer_header
from tests.support.scripted_lp import EVENTS, TIME_PS, FakeLp, expected_hash


def normal(lp: FakeLp) -> int:
    lp.start()
    lp.trace()
    lp.done()
    return lp.finish()


def raises(lp: FakeLp) -> int:
    lp.start()
    lp.trace()
    text = "Traceback (most recent call last):\n"
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


def reports_at_length(lp: FakeLp) -> int:
    """Send a report that is longer than the buffer of the socket."""
    lp.start()
    lp.done(label="long" * MAX_CONTROL_BYTES)
    return lp.finish()


def refuses_a_flag(lp: FakeLp, error: str = "UsageError", *, about_input: bool = True) -> int:
    lp.start()
    lp.control.send(
        Failed(
            lp=lp.lp,
            rank=lp.sips[0],
            error=error,
            message="unknown dtype 'f99'",
            traceback="Traceback",
            time_ps=0,
            about_input=about_input,
        )
    )
    return lp.finish()


def refuses_a_key(lp: FakeLp) -> int:
    return refuses_a_flag(lp, "ConfigError")


def raises_a_config_error_of_its_own(lp: FakeLp) -> int:
    return refuses_a_flag(lp, "ConfigError", about_input=False)


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
    directory = run_directory()
    assert directory is not None
    # LP 0 expects the promises of its peer there.
    board = PromiseBoard(directory, lp.lp, 2)
    lp.control.ready(expected_hash(peers.job))
    lp.control.wait_start()
    header = transfer_header(kind=PacketKind.IPCQ_CREDIT, source_sip=1, sip=200)
    run = packet_run(header, heads_ps=(10**6,))
    frame = Frame((10**6,), 0, (run_message(run, source=1, target=0),))
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.plain_username = str(lp.lp).encode()
        socket.plain_password = Passwords(lp.run_id).of(lp.lp, 0)
        socket.connect(f"ipc://{directory}/lp0")
        socket.send(encode_peer(lp.lp, 0, frame))
        try:
            return lp.finish()
        finally:
            board.close()


def deadlocks(lp: FakeLp) -> int:
    lp.start()
    lp.done(finished=False)
    return lp.finish()


def ends_badly(lp: FakeLp) -> int:
    return normal(lp) + 5


def exits_slowly(lp: FakeLp) -> int:
    normal(lp)
    Event().wait()
    return 0


def interrupts_and_exits_slowly(lp: FakeLp) -> int:
    normal(lp)
    os.kill(os.getppid(), signal.SIGINT)
    Event().wait()
    return 0


BEHAVIOURS: dict[str, Callable[[FakeLp], int]] = {
    behaviour.__name__: behaviour
    for behaviour in (
        normal,
        raises,
        reports_at_length,
        refuses_a_flag,
        refuses_a_key,
        raises_a_config_error_of_its_own,
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
        exits_slowly,
        interrupts_and_exits_slowly,
        sends_a_wrong_packet,
    )
}


def be(behaviour: str, endpoint: str, run_id: str, lp: int) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ending = Ending(run_directory())
    lifeline.follow_parent(ending)
    if behaviour not in BEHAVIOURS:
        # A chip model takes longer to load than all other behaviours to run.
        from sip_node import lp_channels, lp_process
        from tests.support.planted import TRANSPORTS

        lp_channels.ZmqTransport = TRANSPORTS[behaviour]
        joining = lp_channels.Joining(endpoint, run_id, lp, ending)
        return lp_process.main(joining, ImportRecorder())
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
    lifeline.follow_parent(Ending(run_directory()))
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
            read_run_id(int(value["--run-id-fd"])),
            number,
        )
    )
