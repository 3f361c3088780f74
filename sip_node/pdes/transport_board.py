"""Promises over shared memory beside another transport: for LPs of one host.

Frames with messages, reports and grants take the other transport. A frame without messages is only
a promise; it is written to the board, where it replaces the promise before it.

*When a promise on the board holds.* It binds the messages of later frames only, so it holds as soon
as every content that was sent before it has been received. The sender writes their number with it.
A promise that is older than the last frame received is outdated, because that frame has a promise
as well. So a receiver passes a promise on if its number lies between the number of the last frame
and the number of contents received. To the loop it is a frame without messages.

*Ahead.* A frame takes tens of microseconds, a promise one. So with a frame goes a promise of what
holds without its messages: nothing before the first of them.

*Waiting.* A blocked LP watches the board for a bounded time, and soon yields the processor between
two looks. The time adapts: it grows to twice what a successful wait took, and halves with every
wait in vain or beyond it, as on a machine with other work. Then the LP sleeps in the other
transport. It does not watch at all where there are more LPs than processors, nor while contents
that a peer has announced are on their way.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from runtime.core.wallclock import now_s
from runtime.wire.frames import Frame, PeerContent
from sip_node.pdes.promise_board import BoardPromise, PromiseBoard
from sip_node.pdes.sync import Trips
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_zmq import ZmqTransport

LEAST_WATCH_S = 20e-6
"""So long an LP keeps its processor: what it waits for often comes at once."""
LONGEST_WATCH_S = 300e-6
"""About what it costs to sleep and to be woken: longer waits gain nothing by watching."""
_LOOK_EVERY = 64
"""Polls without announced contents, behind which the other transport is polled all the same."""


class BoardTransport:
    """Reaches `peers` over `board` as well, and all LPs over `inner`.

    `watches` is whether the LP may watch the board while it waits. `trips` is the count of `inner`.
    `clock` is in seconds.
    """

    def __init__(
        self,
        inner: Transport,
        board: PromiseBoard,
        peers: Iterable[int],
        *,
        watches: bool,
        trips: Trips | None = None,
        clock: Callable[[], float] = now_s,
    ) -> None:
        self._inner, self._board, self._clock = inner, board, clock
        self._trips = trips or Trips()
        self._peers = tuple(peers)
        self._is_open = False
        self._watches, self._watch_s = watches, LONGEST_WATCH_S
        self._sent = dict.fromkeys(self._peers, 0)
        # By peer, the promises of the last frame.
        self._promised: dict[int, tuple[int, ...]] = dict.fromkeys(self._peers, ())
        self._received = dict.fromkeys(self._peers, 0)
        self._last_frame = dict.fromkeys(self._peers, 0)
        # Promises read that wait for the contents before them.
        self._early: dict[int, BoardPromise] = {}
        self._polls = 0

    def send(self, peer: int, content: PeerContent) -> bool:
        """Write a promise without messages to the board; send everything else."""
        if peer not in self._sent:
            return self._inner.send(peer, content)
        self._open()
        if isinstance(content, Frame) and not content.messages:
            self._write(peer, content.promises_ps, content.null_hops)
            self._promised[peer] = content.promises_ps
            return False
        if isinstance(content, Frame):
            self._promise_ahead(peer, content)
        self._sent[peer] += 1
        # First: a peer that watches the board stops, so that the transport gets a processor.
        self._board.announce(peer, self._sent[peer])
        return self._inner.send(peer, content)

    def poll(self) -> list[tuple[int, PeerContent]]:
        """The contents that have arrived, and the newest promise of each peer that holds."""
        self._open()
        received, waited = list[tuple[int, PeerContent]](), self._trips.waited
        # A look at sockets without news costs more than all else here. Announcements are never
        # late, but an unknown process does not announce what it sends.
        self._polls -= 1
        if self._polls < 0 or self._is_announced():
            self._polls = _LOOK_EVERY
            received = self._inner.poll()
            for peer, content in received:
                self._count(peer, content)
        latest = self._trips.count if received else -1
        for peer in self._peers:
            early = self._early.pop(peer, None)
            # A newer promise replaces the early one, even where it is not early itself.
            promise = self._board.read(peer) or early
            if promise is None:
                continue
            if promise.preceding > self._received[peer]:
                self._early[peer] = promise
            # A promise from before the last frame is outdated, as the frame has one of its own.
            elif promise.preceding >= self._last_frame[peer]:
                received.append((peer, Frame(promise.promises_ps, promise.null_hops)))
                latest = max(latest, promise.trips)
        self._trips.waited = waited
        self._trips.polled(latest)
        return received

    def wait(self, timeout_s: float) -> None:
        """Watch the board for a bounded time, then sleep until something arrives."""
        self._open()
        if self._watches and self._watch():
            return
        # A sleep may end by contents that are not announced.
        self._polls = 0
        if self._is_announced():
            # It is on its way, and needs this processor rather than a ring.
            self._inner.wait(timeout_s)
        else:
            self._board.sleep(lambda: self._inner.wait(timeout_s), self._board.has_news)

    def close(self) -> None:
        """Close the board and the other transport."""
        self._board.close()
        self._inner.close()

    def _promise_ahead(self, peer: int, frame: Frame) -> None:
        """Promise what holds without the messages of a frame: nothing before the first of them.

        The peer uses it while the frame is on its way.
        """
        before_ps, self._promised[peer] = self._promised[peer], frame.promises_ps
        if not before_ps:
            return
        first_ps = min([message.time_ps for message in frame.messages])
        # A message that is not forwarded may come before the promises for those that are.
        promises_ps = tuple(
            [
                max(old, min(new, first_ps))
                for old, new in zip(before_ps, frame.promises_ps, strict=True)
            ]
        )
        if promises_ps != before_ps:
            self._write(peer, promises_ps, frame.null_hops)

    def _write(self, peer: int, promises_ps: tuple[int, ...], null_hops: int) -> None:
        promise = BoardPromise(promises_ps, null_hops, self._sent[peer], self._trips.count)
        self._board.write(peer, promise)

    def _open(self) -> None:
        # Not in the constructor: the peers may not have made their files yet.
        if not self._is_open:
            self._is_open = True
            self._board.open(self._peers)

    def _count(self, peer: int, content: PeerContent) -> None:
        if peer in self._received:
            self._received[peer] += 1
            if isinstance(content, Frame):
                self._last_frame[peer] = self._received[peer]

    def _is_announced(self) -> bool:
        received, announced = self._received, self._board.announced
        return any(announced(peer) > received[peer] for peer in self._peers)

    def _watch(self) -> bool:
        """Whether a promise came while watching."""
        begin_s, passed_s, came = self._clock(), 0.0, False
        while passed_s < self._watch_s:
            came = self._board.has_news()
            if came or self._is_announced():
                break
            self._trips.waited = True
            if passed_s > LEAST_WATCH_S:
                os.sched_yield()
            passed_s = self._clock() - begin_s
        if passed_s >= self._watch_s:
            self._watch_s = max(LEAST_WATCH_S, self._watch_s / 2)
        elif came:
            self._watch_s = min(LONGEST_WATCH_S, max(self._watch_s, 2 * passed_s))
        return came


def with_board(
    transport: ZmqTransport,
    directory: Path,
    lp: int,
    lps: int,
    near: Iterable[int],
    *,
    on_host: int,
) -> Transport:
    """`transport` of LP `lp` of `lps`, and a board in `directory` for the peers `near`.

    These have the same directory; they are among the `on_host` LPs of this host.
    """
    peers = tuple(near)
    if not peers:
        return transport
    board = PromiseBoard(directory, lp, lps)
    transport.wake_by(board.bell, board.clear_bell)
    # With fewer processors than LPs, a peer may need the processor of an LP that watches.
    watches = on_host <= len(os.sched_getaffinity(0))
    return BoardTransport(transport, board, peers, watches=watches, trips=transport.trips)
