"""The coordinator at a tcp endpoint: the processes that it admits, refuses and loses."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zmq

from coordinator.launch.rendezvous import Rendezvous
from runtime.core.errors import ProtocolError, UsageError
from runtime.wire.codec import encode_control
from runtime.wire.control import Busy, Failed, FromLp, Hello, Ready, Refused, Start
from runtime.wire.environment import COORDINATOR_PID
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.passwords import Passwords
from sip_node.control import Control

RUN = "0123"
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def rendezvous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rendezvous]:
    # As LPs that do not follow the connection: they are in this process.
    monkeypatch.setenv(COORDINATOR_PID, "1")
    endpoints = [f"ipc://{tmp_path}/c.sock", "tcp://127.0.0.1:*"]
    with Rendezvous(endpoints, RUN, 2) as rendezvous:
        yield rendezvous


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


def hello(rank: int, run_id: str = RUN) -> Hello:
    return Hello(PROTOCOL_VERSION, run_id, rank, 4711, "")


def received(rendezvous: Rendezvous) -> tuple[int, FromLp]:
    message = rendezvous.receive(5.0)
    assert message is not None
    return message


def refused(rendezvous: Rendezvous, times: int = 1) -> Refused:
    """The timeout of pytest ends an endless wait."""
    while sum(each.times for each in rendezvous.refusals) < times:
        assert rendezvous.receive(0.01) is None
    (reason,) = rendezvous.refusals
    return reason


def dealer(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: str, server: str = "", client: str = ""
) -> zmq.Socket[bytes]:
    """The socket of a stranger, which makes one attempt."""
    stranger = context.socket(zmq.DEALER)
    stranger.linger = 0
    stranger.reconnect_ivl = -1
    if server:
        secret = Passwords(client).curve_secret
        stranger.curve_serverkey = zmq.curve_public(Passwords(server).curve_secret)
        stranger.curve_publickey, stranger.curve_secretkey = zmq.curve_public(secret), secret
    stranger.connect(endpoint)
    return stranger


def test_lps_join_at_every_endpoint(rendezvous: Rendezvous):
    controls = [Control(endpoint, RUN, lp) for lp, endpoint in enumerate(rendezvous.endpoints)]
    for lp, control in enumerate(controls):
        control.send(hello(lp))
        assert received(rendezvous) == (lp, hello(lp))
    controls[1].send_busy(1.5, (), imports=False)
    lp, message = received(rendezvous)
    assert isinstance(message, Busy)
    assert (lp, message.stretch_s) == (1, 1.5)
    rendezvous.receive(0.05)
    for control in controls:
        control.close()
    assert rendezvous.refusals == ()


@pytest.mark.parametrize(
    ("server", "client", "reason"),
    [
        ("", "", "no CURVE"),
        ("another run", RUN, "a wrong server key"),
        (RUN, "another run", "a wrong client key"),
    ],
)
def test_a_stranger_without_the_key_is_refused_and_named(
    rendezvous: Rendezvous,
    context: zmq.Context[zmq.Socket[bytes]],
    server: str,
    client: str,
    reason: str,
):
    attempts, named = 0, Refused("", 0)
    # On loopback a connection may be closed before its address is read.
    while not named.addresses:
        attempts += 1
        with dealer(context, rendezvous.endpoints[1], server, client) as stranger:
            # It may have been refused already.
            with suppress(zmq.Again):
                stranger.send(encode_control(hello(0)), zmq.NOBLOCK)
            named = refused(rendezvous, attempts)
    assert (named.reason, named.times) == (reason, attempts)
    assert named.addresses[0].startswith("127.0.0.1")
    # Nothing of it has been received, and LP 0 can still join.
    control = Control(rendezvous.endpoints[1], RUN, 0)
    control.send(hello(0))
    assert received(rendezvous) == (0, hello(0))
    control.close()


def test_what_is_not_zeromq_is_refused_and_named(rendezvous: Rendezvous):
    host, port = rendezvous.endpoints[1].removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port))) as stranger:
        while not rendezvous._admission._connections._open:
            assert rendezvous.receive(0.01) is None
        stranger.sendall(HTTP)
        own = f"127.0.0.1:{stranger.getsockname()[1]}"
        assert refused(rendezvous) == Refused("not ZeroMQ", 1, (own,))


@pytest.mark.parametrize(
    ("again", "reason"),
    [(hello(0), "LP 0 has joined already"), (hello(1, "other"), "it belongs to another run")],
)
def test_a_hello_that_is_replayed_or_of_another_run_is_refused_and_named(
    rendezvous: Rendezvous, context: zmq.Context[zmq.Socket[bytes]], again: Hello, reason: str
):
    control = Control(rendezvous.endpoints[1], RUN, 0)
    control.send(hello(0))
    received(rendezvous)
    with dealer(context, rendezvous.endpoints[1], RUN, RUN) as stranger:
        stranger.send(encode_control(again))
        assert refused(rendezvous) == Refused(reason, 1, ("127.0.0.1",))
    control.ready("cafe")
    assert received(rendezvous) == (0, Ready(0, "cafe"))
    control.close()


def joined(rendezvous: Rendezvous) -> list[Control]:
    """Ranks 0 and 1, at the two endpoints."""
    controls = [Control(endpoint, RUN, rank) for rank, endpoint in enumerate(rendezvous.endpoints)]
    for rank, control in enumerate(controls):
        control.send(hello(rank))
        assert received(rendezvous)[0] == rank
    return controls


def test_the_end_of_the_connection_of_an_lp_is_known(rendezvous: Rendezvous):
    controls = joined(rendezvous)
    rendezvous.renumber({0: 1, 1: 0})
    assert rendezvous.lost() == {}
    controls[1].close()
    while not rendezvous.lost():
        assert rendezvous.receive(0.01) is None
    assert rendezvous.lost() == {0: "closed"}
    controls[0].close()
    while len(rendezvous.lost()) < 2:
        assert rendezvous.receive(0.01) is None
    assert rendezvous.lost() == {0: "closed", 1: "closed"}
    assert rendezvous.refusals == ()


def test_an_lp_whose_connection_has_ended_before_its_hello_is_read_is_lost(
    rendezvous: Rendezvous, context: zmq.Context[zmq.Socket[bytes]]
):
    stranger = dealer(context, rendezvous.endpoints[0])
    stranger.linger = 1000
    stranger.send(encode_control(hello(0)))
    stranger.close()
    # Its file is closed when all events have come; the message is still there.
    assert rendezvous._admission._events.poll(5000)
    assert received(rendezvous) == (0, hello(0))
    while not rendezvous.lost():
        assert rendezvous.receive(0.01) is None
    assert rendezvous.lost() == {0: "closed"}


def test_a_process_has_another_number_after_its_hello(rendezvous: Rendezvous):
    controls = joined(rendezvous)
    rendezvous.renumber({0: 1, 1: 0})
    # It has not received its number yet.
    failed = Failed(0, -1, "ImportError", "no module", "", 0)
    controls[0].send(failed)
    assert received(rendezvous) == (1, Failed(1, -1, "ImportError", "no module", "", 0))
    controls[0].send(Ready(1, "cafe"))
    assert received(rendezvous) == (1, Ready(1, "cafe"))
    controls[0].send(Ready(0, "cafe"))
    with pytest.raises(ProtocolError, match="LP 1: it sends as LP 0"):
        rendezvous.receive(5.0)
    for control in controls:
        control.close()


def test_a_message_to_an_lp_reaches_the_process_that_has_its_number(rendezvous: Rendezvous):
    controls = joined(rendezvous)
    rendezvous.renumber({0: 1, 1: 0})
    rendezvous.send(0, Start())
    assert controls[1].socket.poll(5000)
    assert not controls[0].socket.poll(0)
    for control in controls:
        control.close()


def test_an_endpoint_that_is_not_of_this_host_is_one_line(tmp_path: Path):
    with pytest.raises(UsageError, match=r"--bind: cannot create tcp://192\.0\.2\.1:1"):
        Rendezvous([f"ipc://{tmp_path}/c.sock", "tcp://192.0.2.1:1"], RUN, 1)
