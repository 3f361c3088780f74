"""Counts the trips between hosts, one after the other, behind the present of an LP.

The wall time of a run is the processor time along a chain of causes, and the trips of frames
between hosts in it, each of which takes the time λ of the network: T(λ) = CPU + trips · λ. Followed
backwards from the last event, the chain stays in an LP while that computes. Where the LP was
blocked, the chain goes on in the LP whose content woke it. So an LP that has waited takes over the
count of the sender, and one more if that is on another host; contents that come while it computes
change nothing.
"""


class Trips:
    """The count of an LP; it is sent with every content."""

    def __init__(self) -> None:
        self.count = 0
        self.waited = False
        """Whether the LP has been blocked since the last poll."""

    def polled(self, latest: int) -> None:
        """A poll has ended: `latest` is the most trips behind its contents, -1 without any."""
        if self.waited and latest >= 0:
            self.count = latest
        self.waited = False
