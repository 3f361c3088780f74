"""A slice of HBM in a launch that is repeated, with blocks at the same or at other places."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sip_node.chip.launches.slice_traffic import ServedSlice, SliceTraffic

if TYPE_CHECKING:
    from sip_node.chip.launches.server_states import ServerChanges, ServerStates


MOST_TURNS = 256
"""Places of blocks for which it is known what a slice does with them."""


class SliceChanges(NamedTuple):
    """The changes of the channels of a slice by a launch, and their services in one that began at
    `begin_ps`.
    """

    channels: "ServerChanges"
    services: Sequence[Any]
    begin_ps: int


class LearnedSlice:
    """A slice of HBM in a launch, with `learned` changes; `states` are its channels.

    What it does with blocks at other places of a round over the channels is found by its traffic.
    """

    __slots__ = (
        "_bins",
        "_known",
        "_learned",
        "_reference",
        "_round_bytes",
        "_states",
        "_traffic",
    )

    def __init__(
        self,
        learned: SliceChanges,
        traffic: SliceTraffic,
        states: "ServerStates",
        bins: Sequence[Any],
        round_bytes: int,
    ) -> None:
        self._learned, self._states = learned, states
        # None once it is certain that the model by itself does not do what the slice has done.
        self._traffic: SliceTraffic | None = traffic
        self._bins, self._round_bytes = bins, round_bytes
        # By the distances modulo the round: None where it serves the packets at other times.
        self._known: dict[tuple[tuple[int, int], ...], SliceChanges | None] = {}
        self._reference: ServedSlice | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of memory of its changes and its traffic, about."""
        traffic = 0 if self._traffic is None else self._traffic.nbytes
        return self._learned.channels.nbytes + traffic

    def moved(self, distances: Mapping[int, int]) -> SliceChanges | None:
        """The changes by a launch if the blocks in the extent at each address have moved by a
        distance; None if its answers leave at other times.
        """
        turned = {begin: each % self._round_bytes for begin, each in distances.items()}
        if not any(turned.values()):
            return self._learned
        key = tuple(sorted(turned.items()))
        if key not in self._known:
            if len(self._known) >= MOST_TURNS:
                self._known.clear()
            self._known[key] = self._found(turned)
        return self._known[key]

    def _found(self, turned: Mapping[int, int]) -> SliceChanges | None:
        traffic = self._traffic
        if traffic is None:
            return None
        if self._reference is None:
            reference = traffic.served(dict.fromkeys(turned, 0))
            if reference is None or not reference.changes.equals(self._learned.channels):
                self._traffic = None
                return None
            self._reference = reference
        reference, served = self._reference, traffic.served(turned)
        # The order of events at one time follows from when they were inserted.
        if (
            served is None
            or served.events != reference.events
            or served.answers != reference.answers
            or served.queued_ps != reference.queued_ps
        ):
            return None
        services = [each.onto(bins) for each, bins in zip(served.services, self._bins, strict=True)]
        return SliceChanges(served.changes.onto(self._states), services, 0)
