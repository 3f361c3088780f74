"""Properties that only sockets have: strangers reach them, and another socket wakes them up."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zmq

from runtime.core.errors import ConfigError, ProtocolError
from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame, Message
from runtime.wire.passwords import Passwords
from sip_node.pdes.transport_zmq import ZmqTransport

RUN = "our run"


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


@pytest.fixture
def transport(tmp_path: Path) -> Iterator[ZmqTransport]:
    transport = ZmqTransport(RUN)
    transport.bind(0, f"ipc://{tmp_path}/lp0")
    transport.connect(0, {}, {}, PeerDecoder(0, (0, 1)))
    yield transport
    transport.close()


@pytest.fixture
def near(tmp_path: Path) -> str:
    """Endpoint at which LPs of the same host reach `transport`."""
    return f"ipc://{tmp_path}/lp0"


@pytest.fixture
def far(transport: ZmqTransport) -> str:
    """Endpoint at which LPs of other hosts reach `transport`."""
    return transport.listen("127.0.0.1")


@pytest.fixture
def peer(context: zmq.Context[zmq.Socket[bytes]], near: str) -> zmq.Socket[bytes]:
    """The socket of LP 1, which may send anything."""
    return connected(context, near, plain(b"1", Passwords(RUN).of(1, 0)))


Options = dict[str, bytes]


def plain(user: bytes, password: bytes) -> Options:
    return {"plain_username": user, "plain_password": password} if user else {}


def curve(server: str, client: str) -> Options:
    """The keys of two runs."""
    secret = Passwords(client).curve_secret
    return {
        "curve_serverkey": zmq.curve_public(Passwords(server).curve_secret),
        "curve_publickey": zmq.curve_public(secret),
        "curve_secretkey": secret,
    }


def connected(
    context: zmq.Context[zmq.Socket[bytes]],
    endpoint: str,
    options: Options,
    kind: int = zmq.PUSH,
) -> zmq.Socket[bytes]:
    socket = context.socket(kind)
    socket.linger = 0
    # One attempt: each would count.
    socket.reconnect_ivl = -1
    for name, value in options.items():
        setattr(socket, name, value)
    socket.connect(endpoint)
    return socket


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([b"no message"], "malformed"),
        ([b"\x93 not msgpack"], "malformed"),
        ([b"a", b"b"], "an unknown process: more than one part in a message"),
        ([encode_peer(1, 0, Frame((5,), 0)), b""], "LP 1: more than one part"),
        (
            [encode_peer(1, 0, Frame((5,), 0, (Message(5, 0, 0, 0),)))],
            "LP 1: message 0 of a frame: field source: 0 is not on LP 1",
        ),
        (
            [encode_peer(1, 0, Frame((5,), 0, (Message(5, 1, 0, 0, b"block"),)))],
            "LP 1: message 0 of a frame: a packet in a run without chips",
        ),
        ([encode_peer(1, 0, Frame((-5,), 0))], "LP 1: .*field promises_ps"),
        ([encode_peer(1, 1, Frame((5,), 0))], "LP 1: content 1 .*: content 0 was lost"),
    ],
)
def test_malformed_input_of_a_peer_is_a_protocol_error(
    transport: ZmqTransport, peer: zmq.Socket[bytes], parts: list[bytes], problem: str
):
    peer.send_multipart(parts)
    transport.wait(10)
    with pytest.raises(ProtocolError, match=problem):
        transport.poll()


STRANGERS: dict[str, tuple[Options, str]] = {
    "no password": ({}, "no password"),
    "CURVE": (curve(RUN, RUN), "no password"),
    "a wrong password": (plain(b"1", b"0" * 32), "a wrong password"),
    "of another run": (plain(b"1", Passwords("another run").of(1, 0)), "a wrong password"),
    "for another LP": (plain(b"1", Passwords(RUN).of(1, 2)), "a wrong password"),
    "of another LP": (plain(b"1", Passwords(RUN).of(2, 0)), "a wrong password"),
    "no number": (plain(b"one", Passwords(RUN).of(1, 0)), "a wrong password"),
    "100 digits": (plain(b"1" * 100, Passwords(RUN).of(1, 0)), "a wrong password"),
}
FAR_STRANGERS: dict[str, tuple[Options, str]] = {
    "plain ZeroMQ": ({}, "no CURVE"),
    "a password": (plain(b"1", Passwords(RUN).of(1, 0)), "no CURVE"),
    "another run": (curve("another run", "another run"), "a wrong server key"),
    "a wrong server key": (curve("another run", RUN), "a wrong server key"),
    "a wrong client key": (curve(RUN, "another run"), "a wrong client key"),
}


@pytest.mark.parametrize(("options", "reason"), STRANGERS.values(), ids=STRANGERS)
def test_what_a_stranger_sends_is_not_received_and_its_process_is_named(
    transport: ZmqTransport,
    context: zmq.Context[zmq.Socket[bytes]],
    peer: zmq.Socket[bytes],
    near: str,
    far: str,
    options: Options,
    reason: str,
):
    """The tcp endpoint that is bound after the ipc endpoint does not change what that requires."""
    assert far
    with connected(context, near, options) as stranger:
        send(stranger, encode_peer(1, 0, Frame((7,), 0)))
        wait_refused(transport, 1)
    peer.send(encode_peer(1, 0, Frame((5,), 0)))
    transport.wait(10)
    assert transport.poll() == [(1, Frame((5,), 0))]
    (refused,) = transport.refused()
    assert (refused.reason, refused.times) == (reason, 1)
    # One without a password may have closed its connection before its process is read.
    if refused.addresses or reason == "a wrong password":
        assert refused.addresses == (f"pid {os.getpid()} (uid {os.getuid()})",)


@pytest.mark.parametrize(("options", "reason"), FAR_STRANGERS.values(), ids=FAR_STRANGERS)
def test_a_stranger_on_another_host_is_refused_and_named_with_its_address(
    transport: ZmqTransport,
    context: zmq.Context[zmq.Socket[bytes]],
    far: str,
    options: Options,
    reason: str,
):
    attempts = 0
    # On loopback a connection may be closed before its address is read.
    while not any(each.addresses for each in transport.refused()):
        attempts += 1
        with connected(context, far, options) as stranger:
            send(stranger, encode_peer(1, 0, Frame((7,), 0)))
            wait_refused(transport, attempts)
    with connected(context, far, curve(RUN, RUN)) as peer:
        peer.send(encode_peer(1, 0, Frame((5,), 0)))
        transport.wait(10)
        assert transport.poll() == [(1, Frame((5,), 0))]
    refused = transport.refused()[0]
    assert (refused.reason, refused.times) == (reason, attempts)
    (address,) = refused.addresses
    assert address.startswith("127.0.0.1")


NOISE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "ZMTP 1.0": b"\x01\x00garbage",
    "a broken handshake": b"\xff" + bytes(8) + b"\x7f\x03\x00PLAIN" + bytes(47) + b"\xff" * 1000,
    "a broken CURVE handshake": b"\xff" + bytes(8) + b"\x7f\x03\x00CURVE" + bytes(999),
    "a megabyte": b"\xff" * (1 << 20),
}


@pytest.mark.parametrize("is_far", [False, True], ids=["ipc", "tcp"])
@pytest.mark.parametrize("data", NOISE.values(), ids=NOISE)
def test_what_is_not_of_the_protocol_is_refused(
    transport: ZmqTransport, near: str, far: str, data: bytes, *, is_far: bool
):
    with raw(far if is_far else near) as stranger:
        with suppress(BrokenPipeError, ConnectionResetError):
            stranger.sendall(data)
        wait_refused(transport, 1)
    assert transport.poll() == []
    (refused,) = transport.refused()
    without = "no CURVE" if is_far else "no password"
    assert refused.reason in ("not ZeroMQ", without)
    if data.startswith(b"GET"):
        assert refused.reason == "not ZeroMQ"


def test_a_hundred_strangers_leave_the_peers_their_turn(
    transport: ZmqTransport,
    context: zmq.Context[zmq.Socket[bytes]],
    peer: zmq.Socket[bytes],
    near: str,
):
    silent = [raw(near) for _ in range(50)]
    noisy = [connected(context, near, plain(b"1", b"guess")) for _ in range(50)]
    for stranger in noisy:
        send(stranger, bytes(1 << 20))
    peer.send(encode_peer(1, 0, Frame((5,), 0)))
    transport.wait(10)
    assert transport.poll() == [(1, Frame((5,), 0))]
    wait_refused(transport, 50)
    for stranger in [*silent, *noisy]:
        stranger.close()
    wait_refused(transport, 100)
    counts = {each.reason: each.times for each in transport.refused()}
    assert counts == {"a wrong password": 50, "no password": 50}


def test_a_socket_of_another_kind_is_refused_with_any_password(
    transport: ZmqTransport, context: zmq.Context[zmq.Socket[bytes]], near: str
):
    options = plain(b"1", Passwords(RUN).of(1, 0))
    with connected(context, near, options, zmq.DEALER) as stranger:
        send(stranger, b"x")
        wait_refused(transport, 1)
    assert transport.poll() == []


def raw(endpoint: str) -> socket.socket:
    """A connection without ZeroMQ."""
    if endpoint.startswith("ipc://"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(endpoint.removeprefix("ipc://"))
        return connection
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host, int(port)))


def send(stranger: zmq.Socket[bytes], data: bytes) -> None:
    # Without effect if the stranger has been refused already.
    with suppress(zmq.Again):
        stranger.send(data, zmq.NOBLOCK)


def wait_refused(transport: ZmqTransport, times: int) -> None:
    """The timeout of pytest ends an endless wait."""
    while sum(each.times for each in transport.refused()) < times:
        transport.wait(0.01)


def test_an_endpoint_that_cannot_be_bound_is_a_config_error(tmp_path: Path):
    transport = ZmqTransport(RUN)
    with pytest.raises(ConfigError, match="LP 3 cannot bind it"):
        transport.bind(3, f"ipc://{tmp_path}/no/such/directory/lp3")
    transport.close()


def test_a_peer_may_bind_after_others_have_connected(tmp_path: Path):
    endpoints = [f"ipc://{tmp_path}/lp{lp}" for lp in range(2)]
    early, late = ZmqTransport(RUN), ZmqTransport(RUN)
    early.bind(0, endpoints[0])
    early.connect(0, {1: endpoints[1]}, {}, PeerDecoder(0, (0, 1)))
    early.send(1, Frame((5,), 0))
    late.bind(1, endpoints[1])
    late.connect(1, {}, {}, PeerDecoder(1, (0, 1)))
    late.wait(10)
    assert late.poll() == [(0, Frame((5,), 0))]
    early.close()
    late.close()


def test_waiting_ends_when_the_control_socket_has_something(
    context: zmq.Context[zmq.Socket[bytes]],
):
    with context.socket(zmq.PAIR) as ours, context.socket(zmq.PAIR) as theirs:
        ours.bind("inproc://control")
        theirs.connect("inproc://control")
        transport = ZmqTransport(RUN, wake=ours)
        theirs.send(b"abort")
        transport.wait(1000)  # the test's own timeout is shorter
        transport.close()
        assert ours.recv(zmq.NOBLOCK) == b"abort"
