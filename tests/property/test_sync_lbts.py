"""The tree of silence reports alone, under any history: no event is executed before what was
granted.

LPs execute, send, receive and report in any order, and so do reports, calls and grants travel.
There are no promises but those of channels between hosts, which are any times that their senders
keep. So the bounds must come from the reports.
"""

from collections import defaultdict, deque
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Call, Grant, PairCount, Silence, SilenceReport
from sip_node.pdes.silence import SilenceTree, lps_of_leaders

Pair = tuple[int, int]
_MESSAGE, _PROMISE = "message", "promise"


class History:
    """LPs with random events on `hosts`; `bound_ps` has the last bound granted to every LP, from
    the moment in which a leader grants it.
    """

    def __init__(self, hosts: tuple[int, ...], seed: int) -> None:
        self._rng, self._hosts, self._lps = seeded(seed), hosts, range(len(hosts))
        self._trees = [SilenceTree(lp, hosts) for lp in self._lps]
        self._lps_of = lps_of_leaders(hosts)
        self._events = {lp: sorted(self._rng.randint(0, 30) for _ in range(3)) for lp in self._lps}
        # On a channel messages and promises, and in the tree contents, keep their order.
        self._channel: defaultdict[Pair, deque[tuple[str, int]]] = defaultdict(deque)
        self._tree: defaultdict[Pair, deque[Silence]] = defaultdict(deque)
        self._sent: defaultdict[Pair, int] = defaultdict(int)
        self._received: defaultdict[Pair, int] = defaultdict(int)
        self._promised: defaultdict[Pair, int] = defaultdict(int)
        self._eit: defaultdict[Pair, int] = defaultdict(int)
        self._messages_left = 12
        self._grants = [0] * len(hosts)
        self.bound_ps = [0] * len(hosts)
        self.ended: set[int] = set()

    def act(self) -> None:
        lp, peer = self._rng.sample(self._lps, 2)
        actions = (self._execute, self._receive, self._promise, self._report, self._pass_on)
        self._rng.choice(actions)(lp, peer)

    def finish(self) -> None:
        """Execute all, promise never, and deliver all; then reports bring the end."""
        pairs = [(a, b) for a in self._lps for b in self._lps if a != b]
        while any(self._events.values()) or any(self._channel.values()):
            for lp, peer in pairs:
                self._receive(lp, peer)
                self._execute(lp, peer)
        for lp, peer in pairs:
            if self._promised[lp, peer] < NEVER_PS:
                self._channel[lp, peer].append((_PROMISE, NEVER_PS))
            self._receive(peer, lp)
        for _ in range(6):
            for lp in self._lps:
                self._report(lp, lp)
            while any(self._tree.values()):
                for lp, peer in pairs:
                    self._pass_on(lp, peer)

    def _execute(self, lp: int, peer: int) -> None:
        if not self._events[lp]:
            return
        time_ps = heappop(self._events[lp])
        assert time_ps >= self.bound_ps[lp]
        if self._messages_left and self._rng.random() < 0.7:
            self._messages_left -= 1
            arrival_ps = max(time_ps + self._rng.randint(1, 5), self._promised[lp, peer])
            self._channel[lp, peer].append((_MESSAGE, arrival_ps))
            self._sent[lp, peer] += 1

    def _promise(self, lp: int, peer: int) -> None:
        if self._hosts[lp] != self._hosts[peer]:
            self._promised[lp, peer] += self._rng.randint(0, 9)
            self._channel[lp, peer].append((_PROMISE, self._promised[lp, peer]))

    def _receive(self, lp: int, peer: int) -> None:
        if not self._channel[peer, lp]:
            return
        kind, time_ps = self._channel[peer, lp].popleft()
        if kind == _PROMISE:
            self._eit[peer, lp] = time_ps
            return
        heappush(self._events[lp], time_ps)
        self._received[peer, lp] += 1

    def _report(self, lp: int, _: int) -> None:
        counts = [
            tuple(
                PairCount(*pair, messages)
                for pair, messages in sorted(of_pair.items())
                if pair[end] == lp and messages
            )
            for end, of_pair in ((0, self._sent), (1, self._received))
        ]
        others = [peer for peer in self._lps if self._hosts[peer] != self._hosts[lp]]
        report = SilenceReport(
            grants=self._grants[lp],
            next_ps=min(self._events[lp], default=NEVER_PS),
            outside_ps=min((self._eit[peer, lp] for peer in others), default=NEVER_PS),
            withholds=self._rng.random() < 0.5 or not self._events[lp],
            sent=counts[0],
            received=counts[1],
        )
        self._take(lp, lp, report)

    def _pass_on(self, lp: int, peer: int) -> None:
        if self._tree[peer, lp]:
            self._take(lp, peer, self._tree[peer, lp].popleft())

    def _take(self, lp: int, sender: int, content: Silence) -> None:
        contents = self._trees[lp].receive(sender, content)
        if not isinstance(content, Grant):
            self._note(lp, contents)
        for receiver, each in contents:
            if receiver != lp:
                self._tree[lp, receiver].append(each)
            elif not isinstance(each, Call):
                assert isinstance(each, Grant)
                self._grants[lp] += 1
                if each.of_run and each.lbts_ps == NEVER_PS:
                    self.ended.add(lp)

    def _note(self, leader: int, contents: list[tuple[int, Silence]]) -> None:
        """A grant binds all LPs for which it holds, before they receive it."""
        for grant in {each for _, each in contents if isinstance(each, Grant)}:
            for lp in self._lps if grant.of_run else self._lps_of[leader]:
                self.bound_ps[lp] = max(self.bound_ps[lp], grant.lbts_ps)


hosts_of_lps = st.lists(st.integers(0, 2), min_size=2, max_size=5).map(
    lambda hosts: tuple(hosts.index(host) for host in hosts)
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(hosts_of_lps, st.integers(0, 2**32), st.integers(0, 250))
def test_no_event_is_executed_before_a_granted_lbts_and_the_end_is_found(
    hosts: tuple[int, ...], seed: int, actions: int
):
    history = History(hosts, seed)
    for _ in range(actions):
        history.act()
    history.finish()
    assert history.ended == set(range(len(hosts)))
