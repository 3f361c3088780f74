"""What a clocked link counts: flits, bytes, and the waits of packets for it."""

from sip_node.chip.fabric.noc_clock import NocClock
from sip_node.chip.fabric.worm import Worm
from sip_node.chip.time_bins import TimeBins
from sip_node.kernel.linked_list import Linked


class FlitCounters(Linked):
    """The counters of a link, which a flit occupies for `flit_cycles`.

    In a run with records, `bins` are its load over time and `packets` the number of those that it
    has carried.
    """

    def __init__(self, name: str, index: int, flit_cycles: int, clock: NocClock) -> None:
        super().__init__()
        self.name, self.index, self.flit_cycles = name, index, flit_cycles
        self._flit_bytes, self._period_ps = clock.flit_bytes, clock.period_ps
        self.flits = self.nbytes = self.queued_cycles = self.packets = 0
        self.bins: TimeBins | None = None

    def serialisation_ps(self, nbytes: int) -> int:
        """The time that the flits of one packet of `nbytes` take."""
        flits = (nbytes + self._flit_bytes - 1) // self._flit_bytes
        return flits * self.flit_cycles * self._period_ps

    def record(self, worm: Worm, now: int, waited: int) -> None:
        """A flit of a packet leaves in cycle `now`.

        A head has `waited` for cycles; of other flits, `waited` is negative.
        """
        period_ps, packet = self._period_ps, worm.packet
        is_head = waited >= 0
        queued_ps = waited * period_ps if is_head else 0
        if self.bins is not None:
            end_ps = (now + self.flit_cycles) * period_ps
            nbytes = worm.nbytes if is_head else 0
            self.bins.add(now * period_ps, end_ps, nbytes, queued_ps, is_head)
        if is_head:
            self.packets += 1
            assert packet.train is not None, "a packet with a train: a run with records"
            queued_ps = packet.train.at_router(worm.hop, self.packets, queued_ps)
            if queued_ps:
                packet.queued(queued_ps, self.name)

    @property
    def busy_ps(self) -> int:
        """The time for which the link has carried flits."""
        return self.flits * self.flit_cycles * self._period_ps

    @property
    def queued_ps(self) -> int:
        """The time for which heads of packets have waited for it."""
        return self.queued_cycles * self._period_ps
