"""The collector alone, under any history: no event is executed before an earlier grant.

LPs execute, send, receive and report in any order, without promises: the bound must come from the
reports.
"""

from collections import defaultdict, deque
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import SilenceReport
from sip_node.pdes.lbts import Collector


class History:
    """`lps` LPs with random events; `lbts_ps` is the last bound granted."""

    def __init__(self, lps: int, seed: int) -> None:
        self._rng = seeded(seed)
        self._lps = range(lps)
        self._events = {lp: sorted(self._rng.randint(0, 30) for _ in range(3)) for lp in self._lps}
        self._in_flight: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._sent: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._received: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._messages_left = 12
        self._collector = Collector(lps)
        self.lbts_ps = 0

    def act(self) -> None:
        lp, peer = self._rng.sample(self._lps, 2)
        self._rng.choice((self._execute, self._receive, self._report))(lp, peer)

    def finish(self) -> None:
        """Deliver and execute the rest; then every LP reports twice."""
        while any(self._in_flight.values()) or any(self._events.values()):
            for lp in self._lps:
                for peer in self._lps:
                    self._receive(lp, peer)
                    self._execute(lp, (lp + 1) % len(self._lps))
        for lp in (*self._lps, *self._lps):
            self._report(lp, lp)

    def _execute(self, lp: int, peer: int) -> None:
        if not self._events[lp]:
            return
        time_ps = heappop(self._events[lp])
        assert time_ps >= self.lbts_ps
        if self._messages_left and self._rng.random() < 0.7:
            self._messages_left -= 1
            self._in_flight[lp, peer].append(time_ps + self._rng.randint(1, 5))
            self._sent[lp, peer] += 1

    def _receive(self, lp: int, peer: int) -> None:
        if self._in_flight[peer, lp]:
            heappush(self._events[lp], self._in_flight[peer, lp].popleft())
            self._received[peer, lp] += 1

    def _report(self, lp: int, _: int) -> None:
        next_ps = min(self._events[lp], default=NEVER_PS)
        sent = tuple(self._sent[lp, peer] for peer in self._lps)
        received = tuple(self._received[peer, lp] for peer in self._lps)
        grant = self._collector.report(lp, SilenceReport(next_ps, sent, received))
        if grant is not None:
            assert grant.lbts_ps >= self.lbts_ps
            self.lbts_ps = grant.lbts_ps


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32), st.integers(0, 120))
def test_no_event_is_executed_before_a_granted_lbts_and_the_end_is_found(
    lps: int, seed: int, actions: int
):
    history = History(lps, seed)
    for _ in range(actions):
        history.act()
    history.finish()
    assert history.lbts_ps == NEVER_PS
