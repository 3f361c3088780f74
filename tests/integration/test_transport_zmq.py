"""What only sockets can do: be reached by strangers, and wake up for another socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from runtime.core.errors import ConfigError, ProtocolError
from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame, Message
from sip_node.pdes.transport_zmq import ZmqTransport


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


@pytest.fixture
def transport(tmp_path: Path) -> Iterator[ZmqTransport]:
    transport = ZmqTransport(0, "our run", f"ipc://{tmp_path}/lp0")
    transport.connect({}, PeerDecoder("our run", 0, (0, 1)))
    yield transport
    transport.close()


@pytest.fixture
def stranger(context: zmq.Context[zmq.Socket[bytes]], transport: ZmqTransport) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.PUSH)
    socket.connect(transport.endpoint)
    return socket


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([b"no message"], "malformed"),
        ([b"\x93 not msgpack"], "malformed"),
        ([b"a", b"b"], "an unknown process: more than one part in a message"),
        (
            [encode_peer("another run", 1, Frame((5,), 0))],
            "an unknown process: it sends as LP 1 of another run",
        ),
        ([encode_peer("our run", 1, Frame((5,), 0)), b""], "LP 1: more than one part"),
        (
            [encode_peer("our run", 1, Frame((5,), 0, (Message(5, 0, 0, 0),)))],
            "LP 1: message 0 of a frame: field source: 0 is not on LP 1",
        ),
        (
            [encode_peer("our run", 1, Frame((5,), 0, (Message(5, 1, 0, 0, b"block"),)))],
            "LP 1: message 0 of a frame: a packet in a run without chips",
        ),
        ([encode_peer("our run", 1, Frame((-5,), 0))], "LP 1: .*field promises_ps"),
    ],
)
def test_malformed_input_is_a_protocol_error(
    transport: ZmqTransport, stranger: zmq.Socket[bytes], parts: list[bytes], problem: str
):
    stranger.send_multipart(parts)
    transport.wait(10)
    with pytest.raises(ProtocolError, match=problem):
        transport.poll()


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
        transport.connect({1: endpoint}, PeerDecoder("our run", 0, (0, 1)))


def test_an_endpoint_that_cannot_be_bound_is_a_config_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="LP 3 cannot bind it"):
        ZmqTransport(3, "run", f"ipc://{tmp_path}/no/such/directory/lp3")


def test_a_peer_may_bind_after_others_have_connected(tmp_path: Path):
    endpoints = [f"ipc://{tmp_path}/lp{lp}" for lp in range(2)]
    early = ZmqTransport(0, "run", endpoints[0])
    early.connect({1: endpoints[1]}, PeerDecoder("run", 0, (0, 1)))
    early.send(1, Frame((5,), 0))
    late = ZmqTransport(1, "run", endpoints[1])
    late.connect({}, PeerDecoder("run", 1, (0, 1)))
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
