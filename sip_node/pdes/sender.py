"""Component promises: a lower bound on the time of a component's next message to another LP.

The event list alone gives `min(next event, safe time)` as the earliest time of a message. A
component often has a better bound: a PE that computes for another 3 us sends nothing until then,
and a message from the far corner of a chip first has to reach the port. Bounds sharpened in this
way are the largest gain in parallelism that an LP has (measured: 1.7 to 8 times).
"""

from runtime.core.errors import InvariantError
from runtime.core.simtime import format_ps
from sip_node.kernel import exact
from sip_node.kernel.containers.int_array import IntArray


class Sender:
    """A component that may send off the LP through one channel. Its obligations:

    - *Path.* From the event in which the component decides to send, to the event that posts the
      message at the channel's entrance, at least `path_ps` pass, with or without contention.
    - *In flight.* A message inside that path is no longer bound by the path from its start. So the
      event that decides calls `departed`, and the event that posts calls `entered` with the same
      time.
    - *Quiet.* After `quiet_until(t)` the component decides to send nothing before `t`, even if
      messages arrive or other components act. What arrives meanwhile waits. The bound never
      decreases.

    All three are called from events only. A component that breaks an obligation causes a
    `CausalityError` in `Sync.post`. `in_flight_ps` are the entrance times of the messages in
    flight.
    """

    def __init__(self, path_ps: int) -> None:
        self._path_ps = path_ps
        self._quiet_ps = 0
        self.in_flight_ps = IntArray()

    def quiet_until(self, time_ps: int) -> None:
        """No decision to send before `time_ps`; a later time that was declared before stays."""
        # Never less: a promise may rest on the later time already.
        self._quiet_ps = max(self._quiet_ps, time_ps)

    def departed(self, entrance_ps: int) -> None:
        """A message is in flight and reaches the channel's entrance not before `entrance_ps`."""
        self.in_flight_ps.append(entrance_ps)

    def entered(self, entrance_ps: int) -> None:
        """The message that departed with `entrance_ps` has been posted.

        Raises `InvariantError` if no message departed with this time.
        """
        # Messages may overtake each other, and two may have the same time: remove one. They enter
        # nearly in the order of their departures, so it is at the front of the array.
        if not self.in_flight_ps.remove(entrance_ps):
            raise InvariantError(
                "sender", f"no message departed for the channel at {format_ps(entrance_ps)}"
            )

    def earliest_send_ps(self, base_ps: int) -> int:
        """No message of this component is posted earlier.

        That holds if no event is executed before `base_ps`.
        """
        # The next decision comes at `base_ps` at the earliest, then the message takes the path.
        earliest_ps = exact.later_ps(max(base_ps, self._quiet_ps), self._path_ps)
        for index in range(self.in_flight_ps.size):
            earliest_ps = min(earliest_ps, max(base_ps, self.in_flight_ps.values[index]))
        return earliest_ps
