"""Transports of LPs on several hosts: listening, lost connections, trips and distance."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.core.errors import ConfigError, ConnectionLost
from runtime.core.wallclock import now_ns
from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.frames import Frame, Grant, PeerContent
from sip_node.pdes.transport_zmq import ZmqTransport

RUN = "our run"


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        ("127.0.0.1", "tcp://127.0.0.1:"),
        ("localhost", "tcp://"),
        ("::1", "tcp://[::1]:"),
        ("[::1]", "tcp://[::1]:"),
    ],
)
def test_listening_takes_a_free_port_of_an_address(address: str, endpoint: str):
    transport = ZmqTransport(RUN)
    bound = transport.listen(address)
    transport.close()
    assert bound.startswith(endpoint)
    assert bound.rpartition(":")[2].isdigit()


@pytest.mark.parametrize("address", ["192.0.2.1", "no.such.host.invalid", "not an address"])
def test_an_address_of_another_host_is_a_config_error(address: str):
    transport = ZmqTransport(RUN)
    with pytest.raises(ConfigError, match=f"{address}.*(cannot bind|no address)"):
        transport.listen(address)
    transport.close()


@pytest.fixture
def pair() -> Iterator[tuple[ZmqTransport, ZmqTransport]]:
    """LPs 0 and 1 on two hosts; only LP 1 sends."""
    ends = ZmqTransport(RUN), ZmqTransport(RUN)
    ends[1].connect(1, {}, {0: ends[0].listen("127.0.0.1")}, PeerDecoder(1, (0, 1)))
    ends[0].connect(0, {}, {}, PeerDecoder(0, (0, 1)))
    ends[1].send(0, Frame((5,), 0))
    ends[0].wait(10)
    assert ends[0].poll() == [(1, Frame((5,), 0))]
    yield ends
    for end in ends:
        end.close()


def until_lost(end: ZmqTransport) -> ConnectionLost:
    """The timeout of pytest ends an endless wait."""
    while True:
        end.wait(10)
        try:
            assert end.poll() == []
        except ConnectionLost as lost:
            return lost


def test_the_end_of_a_connection_between_hosts_is_an_error_that_names_the_peer(
    pair: tuple[ZmqTransport, ZmqTransport],
):
    endpoint = pair[1]._endpoints[0]
    pair[0].close()
    lost = until_lost(pair[1])
    assert (lost.peer_lp, lost.endpoint, lost.reason) == (0, endpoint, "closed")
    assert str(lost) == f"the connection to LP 0 at {endpoint} is lost: closed"


def test_a_lost_connection_is_not_made_again(pair: tuple[ZmqTransport, ZmqTransport]):
    host, port = pair[1]._endpoints[0].removeprefix("tcp://").split(":")
    pair[0].close()
    until_lost(pair[1])
    with socket.create_server((host, int(port))) as server:
        with pytest.raises(ConnectionLost, match="closed"):
            pair[1].send(0, Frame((6,), 0))
        assert until_lost(pair[1]).reason == "closed"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_peer_that_does_not_listen_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    end = ZmqTransport(RUN)
    end.connect(1, {}, {0: f"tcp://127.0.0.1:{port}"}, PeerDecoder(1, (0, 1)))
    assert until_lost(end).reason == "cannot connect"
    end.close()


def test_a_peer_of_another_run_is_an_error():
    peer, end = ZmqTransport("another run"), ZmqTransport(RUN)
    end.connect(1, {}, {0: peer.listen("127.0.0.1")}, PeerDecoder(1, (0, 1)))
    assert until_lost(end).reason == "closed in the handshake"
    for transport in (peer, end):
        transport.close()


def woken(end: ZmqTransport) -> list[tuple[int, PeerContent]]:
    """Contents that wake an LP which has waited, wherever the test's own thread has been."""
    end.wait(10)
    end.trips.waited = True
    return end.poll()


def test_trips_between_hosts_are_counted_along_the_chain_of_frames(tmp_path: Path):
    """LPs 1 and 2 are on one host, LP 0 on another."""
    ends = [ZmqTransport(RUN) for _ in range(3)]
    far = [end.listen("127.0.0.1") for end in ends]
    near = {lp: f"ipc://{tmp_path}/lp{lp}" for lp in (1, 2)}
    for lp, endpoint in near.items():
        ends[lp].bind(lp, endpoint)
    for lp, end in enumerate(ends):
        peers = {peer: near[peer] for peer in near if lp not in (0, peer)}
        others = {peer: far[peer] for peer in range(3) if peer != lp and peer not in peers}
        end.connect(lp, peers, others, PeerDecoder(lp, (0, 1, 2)))
    for sender, receiver, trips in ((1, 0, 1), (0, 2, 2), (2, 1, 2), (1, 2, 2), (2, 0, 3)):
        ends[sender].send(receiver, Grant(5, True))
        assert woken(ends[receiver]) == [(sender, Grant(5, True))]
        assert ends[receiver].between_hosts().trips == trips
    ends[1].send(0, Frame((5,), 0))
    while ends[0].poll() == []:
        pass
    assert ends[0].between_hosts().trips == 3, "it has not waited"
    for end in ends:
        end.close()
    sent = [end.between_hosts() for end in ends]
    assert [(each.frames, each.silence_frames) for each in sent] == [(1, 1), (2, 1), (1, 1)]
    size = len(encode_peer(1, 0, Grant(5, True))) + len(encode_peer(1, 2, Frame((5,), 0), trips=2))
    assert sent[1].bytes == size


def test_a_delayed_content_is_held_and_every_peer_counts_as_on_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = 10**9
    monkeypatch.setattr("sip_node.pdes.transport_zmq.now_ns", lambda: now)
    ends = [ZmqTransport(RUN) for _ in range(2)]
    for lp, end in enumerate(ends):
        end.delay(50e-6)
        end.bind(lp, f"ipc://{tmp_path}/lp{lp}")
        end.connect(lp, {1 - lp: f"ipc://{tmp_path}/lp{1 - lp}"}, {}, PeerDecoder(lp, (0, 1)))
    ends[0].send(1, Grant(5, True))
    now += 49_999
    while not ends[1]._delayed._held:
        assert ends[1].poll() == []
    now += 1
    ends[1].wait(10)
    assert ends[1].poll() == [(0, Grant(5, True))]
    assert ends[0].between_hosts().frames == 1
    for end in ends:
        end.close()


@pytest.mark.slow
def test_a_content_arrives_when_its_delay_is_over(tmp_path: Path):
    """An LP on a busy machine may be late, but not always, and it is never early."""
    ends = [ZmqTransport(RUN) for _ in range(2)]
    for lp, end in enumerate(ends):
        end.delay(2e-3)
        end.bind(lp, f"ipc://{tmp_path}/lp{lp}")
        end.connect(lp, {1 - lp: f"ipc://{tmp_path}/lp{1 - lp}"}, {}, PeerDecoder(lp, (0, 1)))
    late_ns: list[int] = []
    for number in range(50):
        sent_ns = now_ns()
        ends[0].send(1, Grant(number, True))
        while ends[1].poll() == []:
            ends[1].wait(10)
        late_ns.append(now_ns() - sent_ns - 2_000_000)
    for end in ends:
        end.close()
    assert min(late_ns) >= 0
    assert sorted(late_ns)[len(late_ns) // 4] < 200_000
