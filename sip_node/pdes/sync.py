"""The decisions of conservative synchronisation for one LP: frames and times in, decisions out.

No I/O and no clock. Theory of operation (Chandy and Misra 1979, Bryant 1977; the terms are those
of Fujimoto 2000):

- A *promise* on a channel means that no later message on it is earlier. The last promise received
  is the channel's EIT (earliest input time), and the least EIT of all in-channels is the *safe
  time*: every message before it has arrived, so every event before it can be executed.
- After a step, no event of this LP is earlier than `base = min(next event, safe time)`, so nothing
  handed to an out-channel arrives before its EOT (earliest output time) `base + lookahead`.
  Components raise `base` where they have a better bound (`sender.py`), and messages which are
  forwarded from one channel to another need a promise for each number of remaining hops
  (`promises.py`).
- Lookahead is positive, so along every cycle of channels promises grow: no deadlock. But across an
  idle gap they grow by one lookahead a hop. So a promise counts the LPs that it has crossed since
  an event was executed (`null_hops`); beyond `NULL_HOPS` it is withheld, and the LP reports that it
  is silent. From the reports of a host, or of all hosts, follows LBTS (`silence.py`), from which
  their LPs continue: a gap of any length costs each LP a call, a report and a grant.

Why at least one LP always reports. Suppose every LP is blocked and no frame is in flight. Take the
LP with the least safe time `s`, and the LP whose promise `p = s` bounds it. That LP has no event
before its own safe time, which is at least `s`, and no message to forward reaches it before. So its
EOT is at least `s + lookahead > p`: it withholds a promise, and reports. If `s` is never, all LPs
have finished, and report that. The first report makes the collector call the others.
"""

from collections.abc import Iterable, Mapping, Sequence

from runtime.core.errors import InvariantError, ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Frame, Message, PairCount, SilenceReport
from sip_node.kernel.exact import later_ps
from sip_node.pdes.promises import EarliestOutput, ForwardingPaths, InChannel, OutChannel, SendBound

NULL_HOPS = 2
"""The number of LPs without an event that forward a promise.

One is a round trip between two LPs that take turns.
"""


class Trips:
    """Counts the trips between hosts, one after the other, behind the present of an LP.

    The wall time of a run is the processor time along a chain of causes, and the trips of frames
    between hosts in it, each of which takes the time λ of the network: T(λ) = CPU + trips · λ.
    Followed backwards from the last event, the chain stays in an LP while that computes. Where the
    LP was blocked, the chain goes on in the LP whose content woke it. So an LP that has waited
    takes over the count of the sender, and one more if that is on another host; contents that come
    while it computes change nothing. The count is sent with every content.
    """

    def __init__(self) -> None:
        self.count = 0
        self.waited = False
        """Whether the LP has been blocked since the last poll."""

    def polled(self, latest: int) -> None:
        """A poll has ended: `latest` is the most trips behind its contents, -1 without any."""
        if self.waited and latest >= 0:
            self.count = latest
        self.waited = False


class Sync:
    """Promises, safe time and silence of LP `lp` of `lps`; `hosts` has the host of every LP.

    `in_lookahead_ps` and `out_lookahead_ps` give the lookahead of the channel from and to each
    peer, in picoseconds, more than 0 (`ConfigError` otherwise); where several links share a
    channel it is their least. `paths` are the paths of the messages that this LP forwards. Without
    `hosts` all LPs are on one.
    """

    def __init__(
        self,
        lp: int,
        lps: int,
        in_lookahead_ps: Mapping[int, int],
        out_lookahead_ps: Mapping[int, int],
        paths: ForwardingPaths | None = None,
        hosts: Sequence[int] | None = None,
    ) -> None:
        self.lp = lp
        self.lps = lps
        self._in = {peer: InChannel(peer, lp, ps) for peer, ps in sorted(in_lookahead_ps.items())}
        self._out = {
            peer: OutChannel(lp, peer, ps) for peer, ps in sorted(out_lookahead_ps.items())
        }
        self._output = EarliestOutput(self._in, self._out, paths or {})
        self._out_lookahead_ps = min(out_lookahead_ps.values(), default=NEVER_PS)
        self._safe_ps = self._least_eit_ps()
        self.hosts = tuple(hosts or (0,) * lps)
        # By whether the peer is on another host.
        near, far = list[InChannel](), list[InChannel]()
        for peer, channel in self._in.items():
            (near if self.hosts[peer] == self.hosts[lp] else far).append(channel)
        self._near, self._far = tuple(near), tuple(far)
        self._lbts_ps = self._grants = 0
        # Before the first event nothing is news: every peer has the promise of a fresh channel.
        self._hops = NULL_HOPS + 1
        # Whether `frames` kept back a promise that grew, and whether a call came since the grant.
        self._withholds = False
        self._called = False
        # The last report since the last grant: the same state is not reported twice.
        self._reported: SilenceReport | None = None

    @property
    def safe_ps(self) -> int:
        """Every event before this time can be executed."""
        return self._safe_ps

    @property
    def forwarded_ps(self) -> int:
        """No message that is only forwarded, and has not arrived, is handed on before this time."""
        return self._output.forwarded_ps()

    @property
    def least_promise_from(self) -> int:
        """The peer LP whose promise the safe time is; the lowest of several, -1 without peers."""
        return min(self._in, key=lambda peer: (self._in[peer].eit_ps, peer), default=-1)

    @property
    def ended(self) -> bool:
        """Whether no LP will execute an event: all have finished, or all wait for each other."""
        return self._lbts_ps >= NEVER_PS

    def horizon_ps(self, next_ps: int) -> int:
        """The end of the next step, given the next event at `next_ps`: then promise again.

        Not beyond the safe time, and only to where the peers' view of this LP ends: the least
        promise made, or one lookahead after the next event where promises have been withheld.
        Without this limit two LPs alternate instead of overlapping.
        """
        promised_ps = min(
            (channel.promise_of(0) for channel in self._out.values()), default=NEVER_PS
        )
        return min(self._safe_ps, max(promised_ps, later_ps(next_ps, self._out_lookahead_ps)))

    def receive(self, peer: int, frame: Frame, now_ps: int) -> tuple[Message, ...]:
        """The messages of a frame from `peer`, checked; events before `now_ps` are executed.

        Raises `ProtocolError` for a peer without a channel or a promise that decreases, and
        `CausalityError` for a message before the promise already received or before `now_ps`.
        """
        channel = self._in.get(peer)
        if channel is None:
            raise ProtocolError(
                f"LP {peer}", f"a frame for LP {self.lp}, to which it has no channel"
            )
        forwarding_changed = channel.receive(frame, now_ps)
        before_ps, self._safe_ps = self._safe_ps, self._least_eit_ps()
        if self._safe_ps > before_ps or forwarding_changed:
            # The freshest promise that raised a bound here counts: its echo is one hop older.
            self._hops = min(self._hops, frame.null_hops + 1)
        return frame.messages

    def post(self, peer: int, message: Message, remaining_hops: int = 0) -> None:
        """Send `message` with the next frame to `peer`; it crosses `remaining_hops` more channels.

        Raises `CausalityError` if it comes before the promise made to `peer`.
        """
        channel = self._out.get(peer)
        if channel is None:
            raise InvariantError(
                f"LP {self.lp}", f"a message for LP {peer}, to which it has no channel"
            )
        channel.post(message, remaining_hops)

    def executed(self, events: int) -> None:
        """`events` events have been executed: if any, the next promise is news, not an echo."""
        if events:
            self._hops = 0

    def frames(self, own: Iterable[SendBound]) -> tuple[tuple[int, Frame], ...]:
        """The frames to send now, at most one for each peer: pending messages and best promises.

        `own` bounds the messages of this LP's own events. A frame without messages is sent only
        for a promise that grew and has not crossed more than `NULL_HOPS` LPs without an event.
        """
        frames: list[tuple[int, Frame]] = []
        self._withholds = False
        for peer, eots_ps in self._output.times_ps(own).items():
            channel = self._out[peer]
            # Messages are never withheld: only a promise without messages has a time to live.
            grew = channel.exceeds_promises(eots_ps)
            if channel.has_pending or (grew and self._hops <= NULL_HOPS):
                frames.append((peer, channel.frame(eots_ps, self._hops)))
            elif grew:
                self._withholds = True
        if frames:
            # What was sent is no news any more: withhold the next promise unless something happens.
            self._hops = NULL_HOPS + 1
        return tuple(frames)

    def silence(self, next_ps: int) -> SilenceReport | None:
        """The report that is due, given the next event; call it after `frames`.

        None while there are events to execute; while promises still flow, no call has come and
        nothing has been reported since the last grant; and if the report would repeat the previous
        one. What has been reported stays true until an event is executed or a frame comes.
        """
        # No event here and none that a peer could cause: nothing will happen in this LP again.
        finished = min(next_ps, self._safe_ps) >= NEVER_PS
        unasked = self._withholds or finished
        # What was reported is compared with the counts of other LPs, so a change is reported too.
        due = unasked or self._called or self._reported is not None
        if next_ps < self._safe_ps or not due:
            return None
        report = SilenceReport(
            grants=self._grants,
            next_ps=next_ps,
            outside_ps=min([channel.eit_ps for channel in self._far], default=NEVER_PS),
            withholds=unasked,
            sent=self._sent(),
            received=self._received(),
        )
        # The collector would compute the same LBTS from it again.
        if report == self._reported:
            return None
        self._reported = report
        return report

    def call(self) -> None:
        """Report until the next grant whenever this LP is blocked."""
        self._called = True

    def grant(self, lbts_ps: int, *, of_run: bool) -> None:
        """No LP of this host executes an event before `lbts_ps` any more; `of_run`: no LP at all.

        In the LBTS of a host, messages from other hosts are in order: only the channels inside of
        the host profit from it.
        """
        self._called = False
        # At a new LBTS even an equal report is due: the collector has consumed the old ones.
        self._reported = None
        self._grants += 1
        # Of the run alone: LBTS of a host does not bound what other hosts execute.
        if of_run:
            self._lbts_ps = lbts_ps
        for channel in self._in.values() if of_run else self._near:
            channel.grant(lbts_ps)
        self._safe_ps = self._least_eit_ps()

    def _least_eit_ps(self) -> int:
        # Channels are FIFO: every message that was sent before a promise has arrived before it.
        return min((channel.eit_ps for channel in self._in.values()), default=NEVER_PS)

    def _sent(self) -> tuple[PairCount, ...]:
        return tuple(
            PairCount(self.lp, peer, channel.sent)
            for peer, channel in self._out.items()
            if channel.sent
        )

    def _received(self) -> tuple[PairCount, ...]:
        return tuple(
            PairCount(peer, self.lp, channel.received)
            for peer, channel in self._in.items()
            if channel.received
        )
