"""LPs in separate processes: each binds one PULL socket and connects one PUSH socket per peer.

Within a host the sockets use ZeroMQ over ipc, between hosts over tcp. A pair of PUSH and PULL is a
FIFO. Queues are unlimited: if a send could wait for the peer to drain its queue, two LPs could wait
for each other.

An LP connects with its password for the peer, or over tcp with the key of the run, and the peer
closes every other connection (`admission.py`). So everything that arrives was sent by an LP of the
run. Contents from one LP to another are numbered, and one that is missing or comes twice is a
defect. A connection over tcp is made once: its end is an error.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from math import ceil
from os import sched_yield
from pathlib import Path
from select import select
from socket import AI_PASSIVE, SOCK_STREAM, gaierror, getaddrinfo

import zmq  # noqa: TID251 - this module owns the sockets between LPs

from runtime.core.errors import ConfigError, ConnectionLost, ProtocolError
from runtime.core.wallclock import now_ns, wake_precisely
from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.control import HostTraffic, Refused
from runtime.wire.fields import MAX_FRAME_BYTES
from runtime.wire.frames import Envelope, Frame, PeerContent
from runtime.wire.passwords import Passwords
from runtime.wire.pieces import require_size
from runtime.wire.socket_file import CLOSED, HEARTBEAT_TIMEOUT_MS
from sip_node.pdes.admission import Admission
from sip_node.pdes.curve import Curve, is_ipv6
from sip_node.pdes.sync import Trips

_MS_NS = 1_000_000
_SELECT_FILES = 1024
"""`FD_SETSIZE`: select takes no open file with a greater number."""

Source = zmq.Socket[bytes] | int
"""A socket, or an open file."""

_LATE_NS = 1 << 62
LINGER_MS = 1000
"""The longest wait at the end for a peer to take what was sent."""
_RECONNECT_MS = 5
"""A peer of the same host may bind its endpoint after this LP has connected."""
_NEVER_AGAIN = -1
_LEAD_NS = 40_000
"""So long before a delayed content is due the LP stops sleeping: to be woken takes as much."""
_EVENTS, _POLLIN = zmq.EVENTS, int(zmq.POLLIN)


class PrecisePoller:
    """Waits for any of the sources that are registered."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._files: list[int] = []

    def register(self, source: Source) -> None:
        """Wait for `source` as well."""
        self._poller.register(source, zmq.POLLIN)
        self._files.append(source if isinstance(source, int) else source.fileno())

    def ready(self, end_ns: int = 0) -> list[Source]:
        """The sources that can be read, as soon as there is one, at the latest at `end_ns`.

        The default is at once. The time is that of `runtime.core.wallclock.now_ns`.
        """
        left_ns = end_ns and max(0, end_ns - now_ns())
        # Whole milliseconds as ZeroMQ counts them. It takes one call where something comes.
        ready = self._poller.poll(left_ns // _MS_NS)
        while not ready and (left_ns := end_ns - now_ns()) > 0:
            # The file of a socket shows only that its state has changed: after that, and before,
            # the state itself is read (zmq_getsockopt(3), ZMQ_FD).
            self._sleep(left_ns / 1e9)
            ready = self._poller.poll(0)
        return [source for source, _ in ready]

    def _sleep(self, timeout_s: float) -> None:
        if max(self._files) < _SELECT_FILES:
            select(self._files, (), (), timeout_s)
        else:
            # A millisecond more is better than a busy loop.
            self._poller.poll(1)


class DelayLine:
    """Emulates a network between hosts that takes `delay_s`, for LPs with a common clock.

    The contents of a peer leave in their order, since the delay is the same for all.
    """

    def __init__(self, delay_s: float) -> None:
        self._delay_ns = round(delay_s * 1e9)
        self._held: dict[int, deque[Envelope]] = {}

    def hold(self, received: Iterable[Envelope]) -> None:
        """Take what has been received."""
        for envelope in received:
            self._held.setdefault(envelope.lp, deque()).append(envelope)

    def due(self, now_ns: int) -> list[Envelope]:
        """The envelopes whose time is over; they are not held any longer."""
        sent_ns = now_ns - self._delay_ns
        due: list[Envelope] = []
        for queue in self._held.values():
            while queue and queue[0].sent_ns <= sent_ns:
                due.append(queue.popleft())
        return due

    def next_ns(self) -> int:
        """The time at which the next envelope is due; very late if none is held."""
        sent_ns = [queue[0].sent_ns for queue in self._held.values() if queue]
        return min(sent_ns, default=_LATE_NS) + self._delay_ns


class ZmqTransport:
    """The end of an LP of run `run_id`; it sends after `connect`.

    `wait` also returns when the socket `wake` has something to read; its owner reads it.
    """

    def __init__(self, run_id: str, wake: zmq.Socket[bytes] | None = None) -> None:
        self._lp = -1
        self._passwords = Passwords(run_id)
        self._curve = Curve(self._passwords)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        # Until the peers are known, no LP may send: `connect` brings the rules of the run.
        self._decoder = PeerDecoder(-1, ())
        self._push: dict[int, zmq.Socket[bytes]] = {}
        self._endpoints: dict[int, str] = {}
        # Those whose frames count as sent between hosts.
        self._far: set[int] = set()
        self._sent: dict[int, int] = {}
        self._pull = self._socket(zmq.PULL)
        self._admission = Admission(self._context, self._pull, self._passwords, self._curve.public)
        self._lost = self._admission.lost
        self._ipc_files: list[Path] = []
        self._woken: dict[int, Callable[[], None]] = {}
        self._poller = PrecisePoller()
        for source in (self._pull, self._admission.lost_file, *([] if wake is None else [wake])):
            self._poller.register(source)
        self._delayed: DelayLine | None = None
        self.trips = Trips()
        self._frames = self._bytes = self._silence_frames = 0

    def bind(self, lp: int, endpoint: str) -> None:
        """Be LP `lp`, and listen to peers of this host at `endpoint`, `ipc://<path>`.

        Raises `ConfigError` if it cannot be bound.
        """
        self._lp = self._admission.lp = lp
        # Options are those of the endpoints that are bound from now on.
        self._pull.plain_server = True
        self._pull.heartbeat_ivl = 0
        self._bind(endpoint)
        # ZeroMQ leaves the file of an ipc endpoint behind.
        self._ipc_files.append(Path(endpoint.removeprefix("ipc://")))

    def listen(self, address: str) -> str:
        """Listen to LPs of other hosts at `address`, a number or name; returns the endpoint.

        The port is free. Only LPs with the key of the run are admitted. Raises `ConfigError` if
        the address is none of this host.
        """
        number = _resolved(address)
        endpoint = f"tcp://[{number}]:*" if ":" in number else f"tcp://{number}:*"
        self._curve.serve(self._pull)
        self._pull.ipv6 = is_ipv6(endpoint)
        self._bind(endpoint)
        return self._pull.getsockopt_string(zmq.LAST_ENDPOINT)

    def connect(
        self, lp: int, near: Mapping[int, str], far: Mapping[int, str], decoder: PeerDecoder
    ) -> None:
        """Be LP `lp`, and connect to each peer; check input by `decoder`.

        Peers of this host are `near`; one may bind its ipc endpoint later. Peers of other hosts are
        `far`, and listen at their tcp endpoints already.
        """
        self._lp = self._admission.lp = lp
        self._decoder = decoder
        for peer, endpoint in near.items():
            push = self._peer_socket(peer)
            push.plain_username = str(lp).encode()
            push.plain_password = self._passwords.of(lp, peer)
            push.reconnect_ivl = _RECONNECT_MS
            push.connect(endpoint)
        self._endpoints = {**near, **far}
        self._far = set(far) if self._delayed is None else set(self._endpoints)
        for peer, endpoint in far.items():
            push = self._peer_socket(peer)
            self._curve.join(push, endpoint)
            # A connection that ends may have lost a frame, and promises rely on every one: no
            # second attempt.
            push.reconnect_ivl = _NEVER_AGAIN
            push.connect_timeout = HEARTBEAT_TIMEOUT_MS
            self._admission.follow(peer, endpoint, push)
            push.connect(endpoint)

    def delay(self, delay_s: float) -> None:
        """Hold what arrives until `delay_s` after it was sent, as if all peers were on other hosts.

        All LPs of the run do the same, and are on one host. Before the first content arrives.
        """
        wake_precisely()
        self._delayed = DelayLine(delay_s)
        self._far = set(self._endpoints)

    def refused(self) -> tuple[Refused, ...]:
        """The connections of strangers that were refused, by reason; before any peer closes."""
        return self._admission.refused()

    def between_hosts(self) -> HostTraffic:
        """The traffic of this LP to LPs of other hosts so far, and the trips behind its present."""
        return HostTraffic(self._frames, self._bytes, self._silence_frames, self.trips.count)

    def wake_by(self, file: int, woken: Callable[[], None]) -> None:
        """Let `wait` also return when an open file has something to read; `woken` reads it."""
        self._poller.register(file)
        self._woken[file] = woken

    def send(self, peer: int, content: PeerContent) -> bool:
        """Queue `content` for LP `peer`.

        Raises `MessageSizeError` for more than a frame takes, `ConnectionLost` if the connection
        to the peer has ended.
        """
        number = self._sent[peer]
        sent_ns = 0 if self._delayed is None else now_ns()
        data = encode_peer(self._lp, number, content, self.trips.count, sent_ns)
        require_size(content, len(data), MAX_FRAME_BYTES)
        if peer in self._lost:
            # The monitor may report the end before ZeroMQ takes the pipe from the socket, which
            # would then accept a message which no process receives.
            raise self._lost[peer]
        try:
            # A socket whose only connection has ended would wait forever.
            self._push[peer].send(data, zmq.NOBLOCK)
        except zmq.Again as error:
            raise self._loss(peer) from error
        self._sent[peer] = number + 1
        if peer in self._far:
            self._frames += 1
            self._bytes += len(data)
            self._silence_frames += not isinstance(content, Frame)
        return True

    def poll(self) -> list[tuple[int, PeerContent]]:
        """The content received since the last poll, with the sending LP.

        Raises `ProtocolError`, which names the sender, for input that is not allowed, and
        `ConnectionLost` if the connection to a peer on another host has ended.
        """
        received = self._receive()
        if self._delayed is not None:
            self._delayed.hold(received)
            received = self._delayed.due(now_ns())
        if not received:
            self.trips.waited = False
            if self._lost:
                # Only now: what has arrived before is valid.
                raise next(iter(self._lost.values()))
            return []
        self.trips.polled(max([each.trips + (each.lp in self._far) for each in received]))
        return [(envelope.lp, envelope.content) for envelope in received]

    def wait(self, timeout_s: float) -> None:
        """Sleep until something arrives here or on `wake`, at most `timeout_s`."""
        end_ns = now_ns() + ceil(timeout_s * 1e9)
        if self._delayed is None:
            self._sleep(end_ns)
        else:
            self._wait_for_delayed(self._delayed, end_ns)

    def close(self) -> None:
        """Close all sockets; waits at most `LINGER_MS` for peers to take what was sent."""
        self._admission.close()
        # The context ends only after its sockets, within their linger time.
        for socket in (self._pull, *self._push.values()):
            socket.close()
        self._context.term()
        for file in self._ipc_files:
            file.unlink(missing_ok=True)

    def _wait_for_delayed(self, delayed: DelayLine, end_ns: int) -> None:
        """Sleep until what is held is due; what arrives meanwhile is held as well."""
        due_ns, has_more = end_ns, True
        while has_more:
            delayed.hold(self._receive())
            due_ns = min(end_ns, delayed.next_ns())
            if now_ns() >= due_ns:
                return
            ready = self._sleep(due_ns - _LEAD_NS)
            has_more = self._pull in ready
            if ready and not has_more:
                return
        while now_ns() < due_ns:
            sched_yield()

    def _sleep(self, end_ns: int) -> list[Source]:
        """Sleep until a source is ready; returns those that are."""
        ready = self._poller.ready()
        if not ready:
            self.trips.waited = True
            ready = self._poller.ready(end_ns)
        for source in ready:
            if isinstance(source, int) and source in self._woken:
                self._woken[source]()
        return ready

    def _receive(self) -> list[Envelope]:
        received: list[Envelope] = []
        # Reading the events costs less than a receive that fails.
        while int(self._pull.get(_EVENTS)) & _POLLIN:
            data = self._pull.recv(zmq.NOBLOCK)
            if self._pull.get(zmq.RCVMORE):
                raise ProtocolError(self._decoder.sender(data), "more than one part in a message")
            received.append(self._decoder.decode(data))
        return received

    def _loss(self, peer: int) -> ConnectionLost:
        # The report of the monitor may be on its way.
        return self._lost.get(peer) or ConnectionLost(peer, self._endpoints[peer], CLOSED)

    def _bind(self, endpoint: str) -> None:
        try:
            self._pull.bind(endpoint)
        except zmq.ZMQError as error:
            name = f"LP {self._lp}" if self._lp >= 0 else "this LP"
            raise ConfigError(endpoint, "", f"{name} cannot bind it: {error}") from error
        self._admission.listening()

    def _peer_socket(self, peer: int) -> zmq.Socket[bytes]:
        self._push[peer] = push = self._socket(zmq.PUSH)
        self._sent[peer] = 0
        return push

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        # 0 means unlimited: see the theory above.
        socket.set_hwm(0)
        socket.linger = LINGER_MS
        # ZeroMQ closes the connection of a larger message before it is read into memory.
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        return socket


def _resolved(address: str) -> str:
    """The number of an address that may be a name."""
    host = address.strip("[]")
    with suppress(ValueError):
        return str(ip_address(host))
    try:
        return str(getaddrinfo(host, None, type=SOCK_STREAM, flags=AI_PASSIVE)[0][4][0])
    except gaierror as error:
        raise ConfigError(address, "", f"it is no address of a host: {error.strerror}") from error
