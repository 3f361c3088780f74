"""The counts of queues and links that launches which exchange messages have changed."""

from collections import Counter
from collections.abc import Sequence

from sip_node.chip.exchanges.chips_of_lp import ChipsOfLp
from sip_node.chip.pe.queue_table import QueueState


class ExchangeCounts:
    """The counts of some queues, and of the links and flows of all chips, from now on."""

    def __init__(self, chips: ChipsOfLp, queues: Sequence[QueueState]) -> None:
        self._chips, self._queues = chips, queues
        self._before = self._read()
        self._flows = [each.context.flows.counts() for each in chips.chips]
        self._changes: list[tuple[int, ...]] = []
        self._sent: list[tuple[int, ...]] = []
        self._new_flows: list[Counter[int]] = []

    def end(self) -> None:
        """End: a repetition counts what has been counted until now."""
        queues, links = self._read()
        before, links_before = self._before
        self._changes = [_difference(*each) for each in zip(queues, before, strict=True)]
        self._sent = [_difference(*each) for each in zip(links, links_before, strict=True)]
        self._new_flows = [
            each.context.flows.counts() - flows
            for each, flows in zip(self._chips.chips, self._flows, strict=True)
        ]

    def later_flows(self) -> dict[tuple[int, int], int]:
        """The number of transfers since: by source and target SIP."""
        later = dict[tuple[int, int], int]()
        for chip, flows in zip(self._chips.chips, self._flows, strict=True):
            for target, number in chip.context.flows.counts().items():
                later[chip.context.sip, target] = number - flows[target]
        return later

    def repeat(self) -> None:
        """Count the same again."""
        for queue, changes in zip(self._queues, self._changes, strict=True):
            queue.repeat(*changes)
        for chip, (received, *sent), flows in zip(
            self._chips.chips, self._sent, self._new_flows, strict=True
        ):
            boundary = chip.chip.boundary
            boundary.inbox.received += received
            for egress, count in zip(boundary.egresses.values(), sent, strict=True):
                egress.sent += count
            chip.context.flows.repeat(flows)

    def _read(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        queues = [(each.sent, each.filled, each.taken, each.credits) for each in self._queues]
        boundaries = [each.chip.boundary for each in self._chips.chips]
        links = [
            (each.inbox.received, *[egress.sent for egress in each.egresses.values()])
            for each in boundaries
        ]
        return queues, links


def _difference(now: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    return tuple([one - other for one, other in zip(now, before, strict=True)])
