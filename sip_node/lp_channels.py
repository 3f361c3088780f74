"""The connections of an LP to its peers: over shared memory and ipc on its host, else over tcp."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import zmq  # noqa: TID251 - the type of a socket that wakes the LP
from msgspec.structs import replace

from runtime.wire.codec import PeerDecoder
from runtime.wire.control import Done, Peers
from runtime.wire.environment import run_directory
from sip_node.lifeline import Ending
from sip_node.pdes.transport import Transport
from sip_node.pdes.transport_board import with_board
from sip_node.pdes.transport_zmq import ZmqTransport
from sip_node.site import Site

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Joining:
    """The entry of a process into run `run_id` as LP `lp`; with a `site` that is its rank there.

    The coordinator is at `control_endpoint`. `ending` is the end of the process without it.
    """

    control_endpoint: str
    run_id: str
    lp: int
    ending: Ending
    site: Site | None = None


class LpChannels:
    """The connections of the LP that joins by `joining`; `wake` wakes it when it waits for peers.

    Before the peers are known, the LP listens for those of other hosts at `endpoint`, which is
    empty where there are none.
    """

    def __init__(self, joining: Joining, wake: zmq.Socket[bytes]) -> None:
        self._joining, self._lp = joining, joining.lp
        self._directory: Path | None = run_directory()
        self._transport = ZmqTransport(joining.run_id, wake)
        self._channels: Transport = self._transport
        self._near: dict[int, str] = {}
        self._far: dict[int, str] = {}
        self.endpoint = ""
        if joining.site is not None:
            if joining.site.listen:
                self.endpoint = self._transport.listen(joining.site.listen)
        elif self._directory is None:
            # A user has started it by hand, for a run on this host.
            self.endpoint = self._transport.listen(_LOOPBACK)
        else:
            self._bind(joining.lp)

    def reach(self, peers: Peers) -> Callable[[Sequence[int]], Transport]:
        """A function that returns the transport to the LPs which it is given."""

        def transport_to(others: Sequence[int]) -> Transport:
            self._divide(peers, others)
            delay_us = peers.job.delay_us
            if delay_us is not None:
                self._transport.delay(delay_us / 1e6)
            # With a delay each LP is as on a host of its own, where no other one has its memory.
            elif self._near and self._directory is not None:
                host = peers.hosts[peers.lp]
                self._channels = with_board(
                    self._transport,
                    self._directory,
                    peers.lp,
                    len(peers.hosts),
                    sorted(self._near),
                    on_host=peers.hosts.count(host),
                )
            return self._channels

        return transport_to

    def connect(self, decoder: PeerDecoder) -> None:
        """Connect to the LPs that are reached; their input is checked by `decoder`."""
        self._transport.connect(self._lp, self._near, self._far, decoder)

    def complete(self, done: Done) -> Done:
        """The report of the LP with what its connections have counted."""
        return replace(
            done, refused=self._transport.refused(), between_hosts=self._transport.between_hosts()
        )

    def close(self) -> None:
        """Close all connections."""
        self._channels.close()

    def _divide(self, peers: Peers, others: Sequence[int]) -> None:
        """Divide the LPs that are reached into those of this host and those of others."""
        lp, site = peers.lp, self._joining.site
        self._lp = lp
        beside = [other for other in others if peers.hosts[other] == peers.hosts[lp]]
        if site is not None and beside:
            # Not before: a process that is alone on its host leaves nothing there if it is killed.
            ending = self._joining.ending
            ending.shared = ending.shared or site.join()
            self._directory = ending.shared.path
            self._bind(lp)
        near = beside if self._directory is not None else []
        self._near = {other: f"ipc://{self._directory}/lp{other}" for other in near}
        self._far = {other: peers.endpoints[other] for other in others if other not in near}

    def _bind(self, lp: int) -> None:
        self._transport.bind(lp, f"ipc://{self._directory}/lp{lp}")
