"""Flows that meet at one FIFO server: when the last packet of each leaves it.

Packets are served in the order in which their heads arrive, one at a time (Lindley's recursion):

    start(j) = max(arrival(j), end(j - 1)),    end(j) = start(j) + service

A server behind which all flows share their route, and before which no server is slower, sets the
times of all of them: packets leave a faster server before it in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FlowArrivals:
    """Packets of one flow: the head of the first arrives at `head_ps`, the others `spacing_ps`
    apart.
    """

    head_ps: int
    packets: int = 1
    spacing_ps: int = 0


def last_ends_ps(flows: Sequence[FlowArrivals], service_ps: int) -> list[int]:
    """The end of the last packet of each flow; packets that arrive together keep the order of
    `flows`.
    """
    arrivals = sorted(
        (flow.head_ps + number * flow.spacing_ps, index)
        for index, flow in enumerate(flows)
        for number in range(flow.packets)
    )
    served_ps, ends = waits_ps([head_ps for head_ps, _ in arrivals], service_ps), [0] * len(flows)
    for (head_ps, index), wait_ps in zip(arrivals, served_ps, strict=True):
        ends[index] = head_ps + wait_ps + service_ps
    return ends


def waits_ps(arrivals_ps: Sequence[int], service_ps: int) -> list[int]:
    """The wait of each arrival at a server, by the recursion of this module."""
    # D. Lindley, "The theory of queues with a single server", Proc. Cambridge Phil. Soc. 48(2),
    # 1952.
    waits, free_ps = list[int](), 0
    for arrival_ps in arrivals_ps:
        start_ps = max(arrival_ps, free_ps)
        waits.append(start_ps - arrival_ps)
        free_ps = start_ps + service_ps
    return waits
