"""Links between SIPs without a protocol: chips that are joined, and chips whose links end here."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from sip_node.chip.chip import Chip
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.ports.link_egress import LinkEnd


class Crossing(NamedTuple):
    """A packet that has left for `target`, where its head arrives at `time_ps`."""

    time_ps: int
    source: int
    target: int
    seq: int
    tail_ps: int
    packet: Packet


class CalledEnd(LinkEnd):
    """The end of a link that calls a function with all that arrives."""

    def __init__(self, function: Callable[[int, int, int, int, Packet], None]) -> None:
        super().__init__(takes_early=False)
        self._function = function

    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
        self._function(head_ps, source, seq, tail_ps, packet)


class OpenEnds:
    """Keeps all that leaves a chip for its neighbours."""

    def __init__(self, chip: Chip, neighbours: tuple[int, ...]) -> None:
        self.crossings: list[Crossing] = []
        chip.boundary.connect(
            {other: CalledEnd(partial(self._keep, other)) for other in neighbours}
        )

    def _keep(
        self, target: int, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet
    ) -> None:
        self.crossings.append(
            Crossing(
                time_ps=head_ps,
                source=source,
                target=target,
                seq=seq,
                tail_ps=tail_ps,
                packet=packet,
            )
        )


def join(chips: Mapping[int, Chip]) -> None:
    """Connect chips that are all neighbours of each other, on one engine."""
    for chip in chips.values():
        ends: dict[int, LinkEnd] = {
            sip: other.boundary.end for sip, other in chips.items() if other is not chip
        }
        chip.boundary.connect(ends)
