"""A link of your own in place of one of the model's: routers with a small buffer behind every output, and credits for it.

The model's routers have unlimited buffers. Here a packet starts on a link only with a credit, one for each of `CREDITS` buffers
at the end of the link, and the credit is back `ROUND_TRIP_PS` after the last byte of the packet has left the link. So a link
carries no more than `CREDITS` packets in the time of one packet and a round trip:

    packets of 4096 B at 256 GB/s: 2 x 4096 B / (16 ns + 64 ns) = 102.4 GB/s

Name it in a topology file, and every link that leaves a router is one of these:

    (cat topology.yaml; echo 'impl: {router: examples.credited_router:CreditedLink}') > credited.yaml
    python launch.py probe --topology credited.yaml --case dma-far
"""

from collections import deque

from sip_node.chip.fabric.server import Server

CREDITS = 2
ROUND_TRIP_PS = 64_000


class CreditedLink(Server):
    """A FIFO server with `CREDITS` buffers behind it; `_credits_ps` is when each credit is there."""

    def __init__(self, name: str, bw_gbs: float) -> None:
        super().__init__(name, bw_gbs)
        self._credits_ps = deque([0] * CREDITS)

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        """(start, tail) of a packet that arrives from `head_ps` to `tail_ps`; it starts with a credit, not before its head."""
        ready_ps = max(head_ps, self.free_ps, self._credits_ps.popleft())
        start_ps, left_ps = super().reserve(ready_ps, tail_ps, nbytes)
        self.queued_ps += ready_ps - head_ps
        self._credits_ps.append(left_ps + ROUND_TRIP_PS)
        return start_ps, left_ps
