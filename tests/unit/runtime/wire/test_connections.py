"""The processes that a socket admits, and the names of the others: events by hand."""

from collections.abc import Sequence

import pytest

from runtime.wire.connections import Connections, SocketEvent
from runtime.wire.control import Refused
from runtime.wire.passwords import z85

TCP, IPC = "tcp://10.0.0.1:4000", "ipc:///run/lp0"
KEY = bytes(range(32))
CRYPTOGRAPHIC, MISMATCH, BAD_METADATA = 0x11000001, 0x11000002, 0x10000018


class Socket:
    """The connections of a socket, and the addresses of its open files."""

    def __init__(self) -> None:
        self.addresses: dict[int, str] = {}
        self.held_back: list[int] = []
        self.connections = Connections(
            lambda name, password: (name, password) == (b"1", b"right"),
            z85(KEY),
            hold_back=self.held_back.append,
            admit=lambda file, endpoint: self.addresses.get(file, ""),
        )

    def request(self, mechanism: bytes, *credentials: bytes, address: bytes = b"10.0.0.9") -> bytes:
        """The status of the reply to a request of ZAP."""
        parts = [b"1.0", b"7", b"", address, b"", mechanism, *credentials]
        version, number, status, *_ = self.connections.decide(parts)
        assert (version, number) == (b"1.0", b"7")
        return status

    def report(self, *events: tuple[int, int], endpoint: str = TCP) -> None:
        for event, value in events:
            self.connections.report(event, value, endpoint)

    @property
    def refused(self) -> Sequence[Refused]:
        self.connections.settle()
        return self.connections.refusals.refused


@pytest.fixture
def socket() -> Socket:
    return Socket()


def accepted(file: int) -> tuple[int, int]:
    return SocketEvent.ACCEPTED, file


def ended(file: int) -> tuple[int, int]:
    return SocketEvent.DISCONNECTED, file


@pytest.mark.parametrize(
    ("mechanism", "credentials", "admitted"),
    [
        (b"PLAIN", [b"1", b"right"], True),
        (b"PLAIN", [b"1", b"wrong"], False),
        (b"PLAIN", [b"1"], False),
        (b"CURVE", [KEY], True),
        (b"CURVE", [KEY[::-1]], False),
        (b"CURVE", [], False),
        (b"NULL", [], False),
        (b"GSSAPI", [b"me"], False),
    ],
)
def test_only_the_right_credentials_are_admitted(
    socket: Socket, mechanism: bytes, credentials: list[bytes], *, admitted: bool
):
    assert socket.request(mechanism, *credentials) == (b"200" if admitted else b"400")


@pytest.mark.parametrize(
    ("endpoint", "failure", "reason"),
    [
        (TCP, (SocketEvent.PROTOCOL, CRYPTOGRAPHIC), "a wrong server key"),
        (TCP, (SocketEvent.PROTOCOL, MISMATCH), "no CURVE"),
        (IPC, (SocketEvent.PROTOCOL, MISMATCH), "no password"),
        (TCP, (SocketEvent.PROTOCOL, BAD_METADATA), "not ZeroMQ"),
        (TCP, (SocketEvent.NO_DETAIL, 32), "no CURVE"),
        (IPC, (SocketEvent.NO_DETAIL, 104), "no password"),
        (TCP, None, "not ZeroMQ"),
    ],
)
def test_each_kind_of_failed_handshake_has_its_reason(
    socket: Socket, endpoint: str, failure: tuple[int, int] | None, reason: str
):
    socket.addresses[9] = "10.0.0.9:51122"
    socket.report(accepted(9), *([failure] if failure else []), ended(9), endpoint=endpoint)
    assert socket.refused == (Refused(reason, 1, ("10.0.0.9:51122",)),)


def test_connections_of_tcp_wait_until_their_addresses_are_read(socket: Socket):
    socket.report((SocketEvent.LISTENING, 5), endpoint=IPC)
    socket.report((SocketEvent.LISTENING, 6))
    assert socket.held_back == [6]


def test_a_refusal_by_zap_belongs_to_the_connection_of_that_host_which_ends(socket: Socket):
    """Another connection ends first: the refusal is sent before its connection is closed."""
    socket.addresses |= {8: "10.0.0.8:1", 9: "10.0.0.9:2"}
    socket.report(accepted(8), accepted(9))
    assert socket.request(b"CURVE", KEY[::-1], address=b"10.0.0.9") == b"400"
    socket.report(ended(8), ended(9))
    assert set(socket.refused) == {
        Refused("not ZeroMQ", 1, ("10.0.0.8:1",)),
        Refused("a wrong client key", 1, ("10.0.0.9:2",)),
    }


def test_a_refusal_by_zap_is_not_used_up_by_a_connection_without_credentials(socket: Socket):
    """ZAP is faster than the monitor: it has refused the second one when the first one ends."""
    socket.addresses |= {8: "10.0.0.9:1", 9: "10.0.0.9:2"}
    assert socket.request(b"CURVE", KEY[::-1], address=b"10.0.0.9") == b"400"
    socket.report(accepted(8), (SocketEvent.NO_DETAIL, 32), ended(8), accepted(9), ended(9))
    assert set(socket.refused) == {
        Refused("no CURVE", 1, ("10.0.0.9:1",)),
        Refused("a wrong client key", 1, ("10.0.0.9:2",)),
    }


def test_a_refused_process_on_this_host_is_named(socket: Socket):
    """ZAP names a process whose connection has ended before its open file could be read."""
    socket.request(b"PLAIN", b"1", b"wrong", address=b"localhost:1000:100:4711")
    socket.report(accepted(9), (SocketEvent.AUTH, 400), ended(9), endpoint=IPC)
    assert socket.refused == (Refused("a wrong password", 1, ("pid 4711 (uid 1000)",)),)


def test_a_connection_that_has_joined_is_no_stranger_when_it_ends(socket: Socket):
    socket.report(accepted(9))
    assert socket.connections.joined(9)
    socket.report(ended(9))
    assert socket.refused == ()
    # The number of the open file may be used again.
    socket.report(accepted(9), ended(9))
    assert [each.reason for each in socket.refused] == ["not ZeroMQ"]


def test_a_message_that_is_read_after_the_end_of_its_connection_is_no_stranger_s(socket: Socket):
    socket.report(accepted(9), ended(9))
    assert not socket.connections.joined(9)
    assert socket.refused == ()


def test_a_flood_takes_a_bounded_memory(socket: Socket):
    for number in range(10_000):
        file = number % 50
        socket.addresses[file] = f"10.0.{number // 250}.{number % 250}:1" if number % 2 else ""
        socket.request(b"CURVE", KEY[::-1], address=b"10.1.1.1")
        socket.report(accepted(file), (SocketEvent.PROTOCOL, MISMATCH), ended(file))
    assert sum(each.times for each in socket.refused) == 10_000
    assert all(len(each.addresses) <= 16 for each in socket.refused)
    held = socket.connections
    assert len(held._open) + len(held._members) + len(held._ended) + len(held._denied) <= 300
