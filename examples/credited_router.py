"""A link class for routers with small output buffers and credits, instead of the model's links.

The routers of the model have unlimited buffers. Here a packet starts on a link only with a credit,
of which there is one for each of the `CREDITS` buffers at the end of the link. The credit returns
`ROUND_TRIP_PS` after the last byte of the packet has left the link. Therefore a link carries at
most `CREDITS` packets in the time of one packet and a round trip:

    packets of 4096 B at 256 GB/s: 2 x 4096 B / (16 ns + 64 ns) = 102.4 GB/s

Name the class in a topology file, and every link that leaves a router is built with it:

    (cat topology.yaml; echo 'impl: {router: examples.credited_router:CreditedLink}') > links.yaml
    python launch.py probe --topology links.yaml --case dma-far
"""

from collections import deque

from sip_node.chip.fabric.server import Server

CREDITS = 2
ROUND_TRIP_PS = 64_000


class CreditedLink(Server):
    """A FIFO server with `CREDITS` buffers behind it; `_credits_ps` has their times."""

    def __init__(self, name: str, bw_gbs: float) -> None:
        super().__init__(name, bw_gbs)
        self._credits_ps = deque([0] * CREDITS)

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        """(start, tail) of a packet; it starts with a credit, and not before its head."""
        ready_ps = max(head_ps, self.free_ps, self._credits_ps.popleft())
        start_ps, left_ps = super().reserve(ready_ps, tail_ps, nbytes)
        self.queued_ps += ready_ps - head_ps
        self._credits_ps.append(left_ps + ROUND_TRIP_PS)
        return start_ps, left_ps
