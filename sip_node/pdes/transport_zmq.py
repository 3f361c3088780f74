"""LPs in separate processes: each binds one PULL socket and connects one PUSH socket per peer.

The sockets use ZeroMQ over ipc or loopback tcp. A pair of PUSH and PULL is a FIFO. Queues are
unlimited: if a send could wait for the peer to drain its queue, two LPs could wait for each other.

An LP connects with its password for the peer, and the peer closes every other connection
(`admission.py`). So everything that arrives was sent by an LP of the run. Contents from one LP to
another are numbered, and one that is missing or comes twice is a defect.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

import zmq  # noqa: TID251 - this module owns the sockets between LPs

from runtime.core.errors import ConfigError, ProtocolError
from runtime.wire.codec import PeerDecoder, encode_peer
from runtime.wire.fields import MAX_FRAME_BYTES
from runtime.wire.frames import PeerContent
from runtime.wire.passwords import Passwords
from runtime.wire.pieces import require_size
from sip_node.pdes.admission import Admission

LINGER_MS = 1000
"""How long closing waits for a peer to take what was sent."""


class ZmqTransport:
    """The end of LP `lp` in run `run_id`: bound to `endpoint` at once, sends after `connect`.

    `endpoint` is `ipc://<path>` or a loopback `tcp://127.0.0.1:*`; another host is refused with
    `ConfigError`, since the channels are not encrypted. `wait` also returns when the socket `wake`
    has something to read; its owner reads it.
    """

    def __init__(
        self, lp: int, run_id: str, endpoint: str, wake: zmq.Socket[bytes] | None = None
    ) -> None:
        _require_local(endpoint)
        self._lp = lp
        self._passwords = Passwords(run_id)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        # Until the peers are known, no LP may send: `connect` brings the rules of the run.
        self._decoder = PeerDecoder(lp, ())
        self._push: dict[int, zmq.Socket[bytes]] = {}
        self._sent: dict[int, int] = {}
        self._pull = self._socket(zmq.PULL)
        self._admission = Admission(self._context, self._pull, lp, self._passwords)
        self.endpoint = self._bound(endpoint)
        self._poller = zmq.Poller()
        self._woken: dict[int, Callable[[], None]] = {}
        self._poller.register(self._pull, zmq.POLLIN)
        if wake is not None:
            self._poller.register(wake, zmq.POLLIN)

    def connect(self, endpoints: Mapping[int, str], decoder: PeerDecoder) -> None:
        """Connect to each peer at its endpoint, which it may bind later; check input by `decoder`.

        Raises `ConfigError` for an endpoint on another host.
        """
        self._decoder = decoder
        # All are checked before the first connection, so a refusal leaves nothing behind.
        for endpoint in endpoints.values():
            _require_local(endpoint)
        for peer, endpoint in endpoints.items():
            self._push[peer] = push = self._socket(zmq.PUSH)
            self._sent[peer] = 0
            push.plain_username = str(self._lp).encode()
            push.plain_password = self._passwords.of(self._lp, peer)
            push.connect(endpoint)

    def refused(self) -> dict[str, int]:
        """How many connections of strangers were refused, by reason; before any peer closes."""
        return self._admission.refused()

    def wake_by(self, file: int, woken: Callable[[], None]) -> None:
        """Let `wait` also return when an open file has something to read; `woken` reads it."""
        self._poller.register(file, zmq.POLLIN)
        self._woken[file] = woken

    def send(self, peer: int, content: PeerContent) -> bool:
        """Queue `content` for LP `peer`; raises `MessageSizeError` for more than a frame takes."""
        number = self._sent[peer]
        data = encode_peer(self._lp, number, content)
        require_size(content, len(data), MAX_FRAME_BYTES)
        self._push[peer].send(data)
        self._sent[peer] = number + 1
        return True

    def poll(self) -> list[tuple[int, PeerContent]]:
        """The content received since the last poll, with the sending LP.

        Raises `ProtocolError`, which names the sender, for input that is not allowed.
        """
        received: list[tuple[int, PeerContent]] = []
        # Reading the events costs less than a receive that fails.
        while int(self._pull.get(zmq.EVENTS)) & zmq.POLLIN:
            data = self._pull.recv(zmq.NOBLOCK)
            if self._pull.get(zmq.RCVMORE):
                raise ProtocolError(self._decoder.sender(data), "more than one part in a message")
            received.append(self._decoder.decode(data))
        return received

    def wait(self, timeout_s: float) -> None:
        """Sleep until something arrives here or on `wake`, at most `timeout_s`."""
        # Rounded up: 0 ms would make a busy loop of the wait.
        for socket, _ in self._poller.poll(ceil(timeout_s * 1000)):
            if isinstance(socket, int):
                self._woken[socket]()

    def close(self) -> None:
        """Close all sockets; waits at most `LINGER_MS` for peers to take what was sent."""
        # The context ends only after its sockets, within their linger time.
        if not self._pull.closed:
            self._admission.close()
        for socket in (self._pull, *self._push.values()):
            socket.close()
        self._context.term()
        # ZeroMQ leaves the file of an ipc endpoint behind.
        if self.endpoint.startswith("ipc://"):
            Path(self.endpoint.removeprefix("ipc://")).unlink(missing_ok=True)

    def _bound(self, endpoint: str) -> str:
        try:
            self._pull.bind(endpoint)
        except zmq.ZMQError as error:
            self._admission.close()
            self._context.destroy()
            raise ConfigError(endpoint, "", f"LP {self._lp} cannot bind it: {error}") from error
        return self._pull.getsockopt_string(zmq.LAST_ENDPOINT)

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        # 0 means unlimited: see the theory above.
        socket.set_hwm(0)
        socket.linger = LINGER_MS
        # ZeroMQ closes the connection of a larger message before it is read into memory.
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        return socket


def _require_local(endpoint: str) -> None:
    url = urlsplit(endpoint)
    if url.scheme == "ipc" or (url.scheme == "tcp" and _is_loopback(url.hostname)):
        return
    raise ConfigError(
        endpoint, "", "channels are not encrypted: use ipc:// or tcp:// on a loopback address"
    )


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
