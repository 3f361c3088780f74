"""Component promises: what the components of an LP know about their next message to another LP.

`min(next event, safe time)` is all that an event list can say about the earliest message. A component often knows more:
a PE that computes for another 3 us sends nothing until then, and a message from the far corner of the chip needs the way
to the port first. Promises sharpened so are the largest gain in parallelism that an LP has.
"""

from collections.abc import Iterable, Mapping

from runtime.core.errors import InvariantError
from runtime.core.simtime import format_ps
from sip_node.pdes.channel import later_ps


class Sender:
    """One component that may send off the LP through one channel. Its obligations:

    - *Path.* From the event in which the component decides to send, to the event that posts the message at the channel's
      entrance, at least `path_ps` pass, with or without contention.
    - *In flight.* A message inside that path is bound no longer by the path from its start. So the event that decides
      calls `departed`, and the event that posts calls `entered` with the same time.
    - *Quiet.* After `quiet_until(t)` the component decides to send nothing before `t`, whatever arrives, and whatever
      other components do. What reaches it meanwhile waits. A word given is not taken back.

    All three are called from events only. Whoever breaks an obligation gets a `CausalityError` from `Sync.post`.
    """

    __slots__ = ("_in_flight_ps", "_path_ps", "_quiet_ps")

    def __init__(self, path_ps: int) -> None:
        self._path_ps = path_ps
        self._quiet_ps = 0
        self._in_flight_ps: list[int] = []

    def quiet_until(self, time_ps: int) -> None:
        """No decision to send before `time_ps`; an earlier declaration that reaches further stays."""
        self._quiet_ps = max(self._quiet_ps, time_ps)

    def departed(self, entrance_ps: int) -> None:
        """A message is on its way and reaches the channel's entrance not before `entrance_ps`."""
        self._in_flight_ps.append(entrance_ps)

    def entered(self, entrance_ps: int) -> None:
        """The message that departed with `entrance_ps` has been posted; `InvariantError` if none has departed so."""
        if entrance_ps not in self._in_flight_ps:
            raise InvariantError(
                "sender", f"no message departed for the channel at {format_ps(entrance_ps)}"
            )
        self._in_flight_ps.remove(entrance_ps)

    def earliest_send_ps(self, base_ps: int) -> int:
        """No message of this component is posted earlier, if no event is executed before `base_ps`."""
        fresh_ps = later_ps(max(base_ps, self._quiet_ps), self._path_ps)
        return min([fresh_ps, *(max(base_ps, entrance_ps) for entrance_ps in self._in_flight_ps)])


class Senders:
    """All components of an LP that may send to its `peers`. Whoever can post a message must be registered.

    A component that forwards what came from another LP counts too: its path begins where the message comes in.
    """

    def __init__(self, peers: Iterable[int]) -> None:
        self._by_peer: dict[int, list[Sender]] = {peer: [] for peer in peers}

    def add(self, peer: int, path_ps: int) -> Sender:
        """Register a component whose way to the entrance of the channel to `peer` takes at least `path_ps`."""
        sender = Sender(path_ps)
        self._by_peer[peer].append(sender)
        return sender

    def earliest_send_ps(self, base_ps: int) -> Mapping[int, int]:
        """Per peer, the time before which no event posts a message to it, if none is executed before `base_ps`.

        A channel without senders stays at `base_ps`: saying nothing is always allowed, and promises nothing.
        """
        return {
            peer: min((sender.earliest_send_ps(base_ps) for sender in senders), default=base_ps)
            for peer, senders in self._by_peer.items()
        }
