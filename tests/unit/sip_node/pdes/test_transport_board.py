"""Promises of a board that a receiver may use, and its waits for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.wire.frames import Frame, Grant, Message
from sip_node.pdes.promise_board import PromiseBoard
from sip_node.pdes.sync import Trips
from sip_node.pdes.transport_board import (
    LEAST_WATCH_S,
    LONGEST_WATCH_S,
    BoardTransport,
    with_board,
)
from sip_node.pdes.transport_zmq import ZmqTransport
from tests.support.transport_memory import MemoryNetwork

MESSAGE = Message(50, 0, 1, 0)


class LateTransport:
    """Keeps what arrives until it is released, and counts the waits."""

    def __init__(self, lp: int, network: MemoryNetwork) -> None:
        self._inner, self.passes, self.waits = network.transport(lp), True, 0

    def send(self, peer: int, content: Frame | Grant) -> bool:
        return self._inner.send(peer, content)

    def poll(self) -> list[tuple[int, Frame | Grant]]:
        return self._inner.poll() if self.passes else []

    def wait(self, timeout_s: float) -> None:
        self.waits += 1

    def close(self) -> None:
        self._inner.close()


class Ends:
    def __init__(self, directory: Path, *, watches: bool = False) -> None:
        network = MemoryNetwork(2)
        self.inner = [LateTransport(lp, network) for lp in range(2)]
        self.times_s = iter(range(10**9))
        boards = [PromiseBoard(directory, lp, 2) for lp in range(2)]
        self.trips = [Trips() for _ in range(2)]
        self.ends = [
            BoardTransport(
                self.inner[lp],
                boards[lp],
                [1 - lp],
                watches=watches,
                trips=self.trips[lp],
                clock=lambda: 1e-6 * next(self.times_s),
            )
            for lp in range(2)
        ]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Ends]:
    ends = Ends(tmp_path)
    yield ends
    for end in ends.ends:
        end.close()


def test_a_promise_takes_no_message_and_everything_else_does(pair: Ends) -> None:
    sender = pair.ends[0]
    assert not sender.send(1, Frame((5,), 0))
    assert sender.send(1, Frame((6,), 0, (MESSAGE,)))
    assert sender.send(1, Grant(7, True))


def test_a_promise_holds_when_all_that_was_sent_before_has_been_received(pair: Ends) -> None:
    sender, receiver = pair.ends
    pair.inner[1].passes = False
    sender.send(1, Frame((20,), 0, (MESSAGE,)))
    sender.send(1, Frame((60,), 0))
    assert receiver.poll() == []
    pair.inner[1].passes = True
    assert receiver.poll() == [(0, Frame((20,), 0, (MESSAGE,))), (0, Frame((60,), 0))]
    assert receiver.poll() == []


def test_an_early_promise_that_is_replaced_does_not_come_back(pair: Ends) -> None:
    sender, receiver = pair.ends
    pair.inner[1].passes = False
    sender.send(1, Grant(1, True))
    sender.send(1, Frame((60,), 0))
    assert receiver.poll() == []
    sender.send(1, Frame((70,), 0))
    pair.inner[1].passes = True
    assert receiver.poll() == [(0, Grant(1, True)), (0, Frame((70,), 0))]
    assert receiver.poll() == []


def test_a_promise_older_than_the_last_frame_is_outdated(pair: Ends) -> None:
    sender, receiver = pair.ends
    sender.send(1, Frame((10,), 0))
    sender.send(1, Frame((20,), 0, (MESSAGE,)))
    assert receiver.poll() == [(0, Frame((20,), 0, (MESSAGE,)))]
    assert receiver.poll() == []


def test_what_holds_without_the_messages_of_a_frame_is_promised_ahead_of_it(pair: Ends) -> None:
    sender, receiver = pair.ends
    pair.inner[1].passes = False
    sender.send(1, Frame((10, 40), 0))
    sender.send(1, Frame((60, 60), 1, (MESSAGE,)))
    # The message comes at 50.
    assert receiver.poll() == [(0, Frame((50, 50), 1))]
    sender.send(1, Frame((70, 80), 2, (Message(65, 0, 1, 1), Message(61, 0, 1, 2))))
    # It cannot hold before the frame sent first has been received.
    assert receiver.poll() == []
    pair.inner[1].passes = True
    assert [content.promises_ps for _, content in receiver.poll()] == [(60, 60), (70, 80)]


def test_a_promise_ahead_never_decreases(pair: Ends) -> None:
    sender, receiver = pair.ends
    pair.inner[1].passes = False
    # No message that is forwarded comes before 55; the one here is not forwarded.
    sender.send(1, Frame((40, 55), 0))
    sender.send(1, Frame((60, 70), 0, (MESSAGE,)))
    assert receiver.poll() == [(0, Frame((50, 55), 0))]


def test_a_promise_before_a_grant_holds(pair: Ends) -> None:
    sender, receiver = pair.ends
    sender.send(1, Frame((10,), 0))
    sender.send(1, Grant(7, True))
    assert receiver.poll() == [(0, Grant(7, True)), (0, Frame((10,), 0))]


def test_what_was_not_announced_is_received_as_well(pair: Ends) -> None:
    receiver = pair.ends[1]
    receiver.poll()
    pair.inner[0].send(1, Grant(7, True))
    received = [content for _ in range(70) for content in receiver.poll()]
    assert received == [(0, Grant(7, True))]


def test_without_processors_to_spare_an_lp_sleeps_at_once(pair: Ends) -> None:
    before_s = next(pair.times_s)
    pair.ends[1].wait(1.0)
    assert pair.inner[1].waits == 1
    assert next(pair.times_s) == before_s + 1


def test_an_lp_watches_for_a_bounded_time_that_halves_in_vain(tmp_path: Path) -> None:
    pair = Ends(tmp_path, watches=True)
    receiver, spans_s = pair.ends[1], list[float]()
    for _ in range(12):
        before_s = next(pair.times_s)
        receiver.wait(1.0)
        spans_s.append(1e-6 * (next(pair.times_s) - before_s))
    assert pair.inner[1].waits == 12
    assert LONGEST_WATCH_S <= spans_s[0] < LONGEST_WATCH_S + 5e-6
    assert LEAST_WATCH_S <= spans_s[-1] < LEAST_WATCH_S + 5e-6
    for end in pair.ends:
        end.close()


def test_an_lp_that_watches_returns_with_a_promise_and_not_for_announced_contents(
    tmp_path: Path,
) -> None:
    pair = Ends(tmp_path, watches=True)
    sender, receiver = pair.ends
    sender.send(1, Frame((5,), 0))
    receiver.wait(1.0)
    assert pair.inner[1].waits == 0
    receiver.poll()
    # What is announced takes the transport, which needs the processor.
    sender.send(1, Grant(5, True))
    receiver.wait(1.0)
    assert pair.inner[1].waits == 1
    for end in pair.ends:
        end.close()


def test_a_promise_brings_the_trips_of_its_sender_to_an_lp_that_waits_for_it(pair: Ends) -> None:
    sender, receiver = pair.ends
    pair.trips[0].count = 4
    sender.send(1, Frame((5,), 0))
    assert receiver.poll() == [(0, Frame((5,), 0))]
    assert pair.trips[1].count == 0
    sender.send(1, Frame((6,), 0))
    pair.trips[1].waited = True
    assert receiver.poll() == [(0, Frame((6,), 0))]
    assert pair.trips[1].count == 4


def test_an_lp_is_blocked_while_it_watches_unless_there_is_news_already(tmp_path: Path) -> None:
    pair = Ends(tmp_path, watches=True)
    sender, receiver = pair.ends
    sender.send(1, Frame((5,), 0))
    receiver.wait(1.0)
    assert not pair.trips[1].waited
    receiver.poll()
    receiver.wait(1.0)
    assert pair.trips[1].waited
    for end in pair.ends:
        end.close()


@pytest.mark.parametrize(("near", "has_board"), [([1], True), ([], False)])
def test_a_board_joins_the_peers_of_one_host(
    tmp_path: Path, near: list[int], *, has_board: bool
) -> None:
    inner = ZmqTransport("run")
    inner.bind(0, f"ipc://{tmp_path}/lp0")
    chosen = with_board(inner, tmp_path, 0, 2, near, on_host=2)
    assert isinstance(chosen, BoardTransport) is has_board
    chosen.close()
    assert list(tmp_path.iterdir()) == []
