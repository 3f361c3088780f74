"""What only sockets can do: be reached by strangers, and wake up for another socket."""

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
    transport = ZmqTransport(0, RUN, f"ipc://{tmp_path}/lp0")
    transport.connect({}, PeerDecoder(0, (0, 1)))
    yield transport
    transport.close()


@pytest.fixture
def peer(context: zmq.Context[zmq.Socket[bytes]], transport: ZmqTransport) -> zmq.Socket[bytes]:
    """The socket of LP 1, which may send anything."""
    return connected(context, transport, b"1", Passwords(RUN).of(1, 0))


def connected(
    context: zmq.Context[zmq.Socket[bytes]],
    transport: ZmqTransport,
    user: bytes,
    password: bytes,
    kind: int = zmq.PUSH,
) -> zmq.Socket[bytes]:
    socket = context.socket(kind)
    socket.linger = 0
    # One attempt: each would count.
    socket.reconnect_ivl = -1
    if user:
        socket.plain_username, socket.plain_password = user, password
    socket.connect(transport.endpoint)
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


STRANGERS = {
    "no password": (b"", b""),
    "a wrong password": (b"1", b"0" * 32),
    "the password of another run": (b"1", Passwords("another run").of(1, 0)),
    "the password for another LP": (b"1", Passwords(RUN).of(1, 2)),
    "the password of another LP": (b"1", Passwords(RUN).of(2, 0)),
    "no number": (b"one", Passwords(RUN).of(1, 0)),
    "a number of 100 digits": (b"1" * 100, Passwords(RUN).of(1, 0)),
}


@pytest.mark.parametrize("credentials", STRANGERS.values(), ids=STRANGERS)
def test_what_a_stranger_sends_is_not_received_and_its_connection_is_counted(
    transport: ZmqTransport,
    context: zmq.Context[zmq.Socket[bytes]],
    peer: zmq.Socket[bytes],
    credentials: tuple[bytes, bytes],
):
    with connected(context, transport, *credentials) as stranger:
        send(stranger, encode_peer(1, 0, Frame((7,), 0)))
        wait_refused(transport, 1)
    peer.send(encode_peer(1, 0, Frame((5,), 0)))
    transport.wait(10)
    assert transport.poll() == [(1, Frame((5,), 0))]
    (reason,) = transport.refused()
    assert reason == ("a wrong password" if credentials[0] else "no password")


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\xff" * (1 << 20),
        b"\x01\x00garbage",
        b"\xff" + bytes(8) + b"\x7f\x03\x00PLAIN" + bytes(47) + b"\xff" * 1000,
    ],
    ids=["HTTP", "a megabyte", "ZMTP 1.0", "no handshake"],
)
def test_what_is_not_of_the_protocol_is_refused(transport: ZmqTransport, data: bytes):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(transport.endpoint.removeprefix("ipc://"))
        with suppress(BrokenPipeError, ConnectionResetError):
            stranger.sendall(data)
        wait_refused(transport, 1)
    assert transport.poll() == []


def test_a_hundred_strangers_leave_the_peers_their_turn(
    transport: ZmqTransport, context: zmq.Context[zmq.Socket[bytes]], peer: zmq.Socket[bytes]
):
    silent = [socket.socket(socket.AF_UNIX) for _ in range(50)]
    for stranger in silent:
        stranger.connect(transport.endpoint.removeprefix("ipc://"))
    noisy = [connected(context, transport, b"1", b"guess") for _ in range(50)]
    for stranger in noisy:
        send(stranger, bytes(1 << 20))
    peer.send(encode_peer(1, 0, Frame((5,), 0)))
    transport.wait(10)
    assert transport.poll() == [(1, Frame((5,), 0))]
    wait_refused(transport, 50)
    for stranger in [*silent, *noisy]:
        stranger.close()
    wait_refused(transport, 100)
    assert transport.refused() == {"a wrong password": 50, "no password": 50}


def test_a_socket_of_another_kind_is_refused_with_any_password(
    transport: ZmqTransport, context: zmq.Context[zmq.Socket[bytes]]
):
    with connected(context, transport, b"1", Passwords(RUN).of(1, 0), zmq.DEALER) as stranger:
        send(stranger, b"x")
        wait_refused(transport, 1)
    assert transport.poll() == []


def send(stranger: zmq.Socket[bytes], data: bytes) -> None:
    # Without effect if the stranger has been refused already.
    with suppress(zmq.Again):
        stranger.send(data, zmq.NOBLOCK)


def wait_refused(transport: ZmqTransport, times: int) -> None:
    """The timeout of pytest ends an endless wait."""
    while sum(transport.refused().values()) < times:
        transport.wait(0.01)


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:*", "tcp://localhost:*"])
def test_a_wildcard_port_becomes_the_port_that_was_bound(endpoint: str):
    transport = ZmqTransport(0, "run", endpoint)
    transport.close()
    assert transport.endpoint.startswith("tcp://127.0.0.1:")
    assert not transport.endpoint.endswith("*")


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://0.0.0.0:*",
        "tcp://*:5555",
        "tcp://10.1.2.3:9000",
        "tcp://example.org:1",
        "udp://127.0.0.1:1",
    ],
)
def test_an_endpoint_beyond_this_host_is_refused(endpoint: str, transport: ZmqTransport):
    with pytest.raises(ConfigError, match="not encrypted"):
        ZmqTransport(0, "run", endpoint)
    with pytest.raises(ConfigError, match="not encrypted"):
        transport.connect({1: endpoint}, PeerDecoder(0, (0, 1)))


def test_an_endpoint_that_cannot_be_bound_is_a_config_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="LP 3 cannot bind it"):
        ZmqTransport(3, "run", f"ipc://{tmp_path}/no/such/directory/lp3")


def test_a_peer_may_bind_after_others_have_connected(tmp_path: Path):
    endpoints = [f"ipc://{tmp_path}/lp{lp}" for lp in range(2)]
    early = ZmqTransport(0, "run", endpoints[0])
    early.connect({1: endpoints[1]}, PeerDecoder(0, (0, 1)))
    early.send(1, Frame((5,), 0))
    late = ZmqTransport(1, "run", endpoints[1])
    late.connect({}, PeerDecoder(1, (0, 1)))
    late.wait(10)
    assert late.poll() == [(0, Frame((5,), 0))]
    early.close()
    late.close()


def test_waiting_ends_when_the_control_socket_has_something(
    tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]]
):
    with context.socket(zmq.PAIR) as ours, context.socket(zmq.PAIR) as theirs:
        ours.bind("inproc://control")
        theirs.connect("inproc://control")
        transport = ZmqTransport(0, "run", f"ipc://{tmp_path}/lp0", wake=ours)
        theirs.send(b"abort")
        transport.wait(1000)  # the test's own timeout is shorter
        transport.close()
        assert ours.recv(zmq.NOBLOCK) == b"abort"
