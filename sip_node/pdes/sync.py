"""The decisions of conservative synchronisation for one LP: frames and times in, decisions out. No I/O, no clock.

Theory of operation (Chandy and Misra 1979, Bryant 1977; the terms are those of Fujimoto 2000):

- A *promise* on a channel says that no later message on it is earlier. The last one received is the channel's EIT, and
  the least EIT of all in-channels is the *safe time*: every message before it is here, so every event before it can be
  executed.
- After a step, no event of this LP is earlier than `base = min(next event, safe time)`, so nothing handed to an
  out-channel arrives before its EOT `base + lookahead`. A component that knows better raises `base` for its channel.
- An LP may send messages on that come from elsewhere and are for elsewhere: they are in *transit*. When the next one comes
  is known to its in-channel, not to a component here. That channel's EIT would do, but two promises that wait for each other
  creep. So there is a promise for every number of further channels that a message has ahead: what goes out with n ahead has
  come in with n + 1 ahead, a promise that waits for fewer others. The longest routes' depends on their first LP alone.
- Lookahead is positive, so along every cycle of channels promises grow: no deadlock. But across an idle gap they grow by
  one lookahead a hop. So a promise counts the LPs it has crossed since an event was executed (`null_hops`); beyond
  `NULL_HOPS` it is withheld, and the LP reports itself silent. The collector (`lbts.py`) turns the reports of all LPs
  into LBTS, from where everyone goes on: a gap costs each LP a call, a report and a grant, whatever its length.

Why withholding never hangs a run. Suppose every LP is blocked and no frame is in flight. Take the LP with the least safe
time `s`, and the LP whose promise `p = s` bounds it. That one has no event before its own safe time, which is at least
`s`, and nothing to send on comes to it before. So its EOT is at least `s + lookahead > p`: it withholds a promise, and
reports. If `s` is never, all LPs have finished, and report that. The first report makes the collector call for those of
the others.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runtime.core.errors import InvariantError, ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.messages import Frame, Message, SilenceReport
from sip_node.pdes.channel import InChannel, OutChannel, later_ps

NULL_HOPS = 2
"""A promise is forwarded by so many LPs that executed nothing. One is a round trip between two LPs that take turns."""


class ForwardingPath(NamedTuple):
    """The way of messages from LP `source` through this LP to a third one: from arrival to departure at least `delay_ps`."""

    source: int
    delay_ps: int


ForwardingPaths = Mapping[int, Sequence[Sequence[ForwardingPath]]]
"""Peer LP -> by remaining_hops: the ways to its channel of messages that have at least so many further channels ahead there."""


class Sync:
    """Promises, safe time and silence of LP `lp` of `lps`.

    `in_lookahead_ps` and `out_lookahead_ps` give the lookahead of the channel from and to each peer, in picoseconds, more
    than 0 (`ConfigError` otherwise); where several links share a channel it is their least. `transits` are the ways of all
    messages that an LP only sends on.
    """

    def __init__(
        self,
        lp: int,
        lps: int,
        in_lookahead_ps: Mapping[int, int],
        out_lookahead_ps: Mapping[int, int],
        transits: ForwardingPaths | None = None,
    ) -> None:
        self.lp = lp
        self.lps = lps
        self._transits = transits or {}
        self._in = {peer: InChannel(peer, lp, ps) for peer, ps in sorted(in_lookahead_ps.items())}
        self._out = {
            peer: OutChannel(lp, peer, ps) for peer, ps in sorted(out_lookahead_ps.items())
        }
        self._out_lookahead_ps = min(out_lookahead_ps.values(), default=NEVER_PS)
        self._safe_ps = self._least_eit_ps()
        self._lbts_ps = 0
        self._hops = NULL_HOPS + 1
        self._withholds = False
        self._called = False
        self._reported: SilenceReport | None = None

    @property
    def safe_ps(self) -> int:
        """Every event before this time can be executed."""
        return self._safe_ps

    @property
    def least_promise_from(self) -> int:
        """The peer LP whose promise the safe time is; the lowest of several, -1 without peers."""
        return min(self._in, key=lambda peer: (self._in[peer].eit_ps, peer), default=-1)

    @property
    def ended(self) -> bool:
        """Whether no LP will ever execute an event again: all have finished, or all wait for each other."""
        return self._lbts_ps >= NEVER_PS

    def horizon_ps(self, next_ps: int) -> int:
        """How far to step, from the next event at `next_ps`, before promising again.

        Not further than the safe time, and only to where the peers' view of this LP ends: to the least promise made, or
        over one lookahead of events where promises have been withheld. Without this two LPs alternate instead of
        overlapping.
        """
        promised_ps = min((channel.promise_ps for channel in self._out.values()), default=NEVER_PS)
        return min(self._safe_ps, max(promised_ps, later_ps(next_ps, self._out_lookahead_ps)))

    def receive(self, peer: int, frame: Frame, now_ps: int) -> tuple[Message, ...]:
        """The messages of a frame from `peer`, checked. `now_ps`: every event before it has been executed.

        Raises `ProtocolError` for a peer without a channel or a promise that decreases, and `CausalityError` for a
        message before the promise already received or before `now_ps`.
        """
        channel = self._in.get(peer)
        if channel is None:
            raise ProtocolError(
                f"LP {peer}", f"a frame for LP {self.lp}, to which it has no channel"
            )
        news_of_transits = channel.receive(frame, now_ps)
        before_ps, self._safe_ps = self._safe_ps, self._least_eit_ps()
        if self._safe_ps > before_ps or news_of_transits:
            self._hops = min(self._hops, frame.null_hops + 1)
        return frame.messages

    def post(self, peer: int, message: Message, remaining_hops: int = 0) -> None:
        """Send `message`, which crosses so many more channels later, with the next frame to `peer`.

        `CausalityError` if it comes before the promise made to `peer`.
        """
        channel = self._out.get(peer)
        if channel is None:
            raise InvariantError(
                f"LP {self.lp}", f"a message for LP {peer}, to which it has no channel"
            )
        channel.post(message, remaining_hops)

    def executed(self, events: int) -> None:
        """`events` events have been executed: what is promised next is news, not an echo."""
        if events:
            self._hops = 0

    def frames(
        self, earliest_send_ps: Mapping[int, Sequence[int]]
    ) -> tuple[tuple[int, Frame], ...]:
        """What to tell the peers now: at most one frame each, with all messages posted and the best promise.

        `earliest_send_ps[peer][n]`: no event hands a message with n or more further channels ahead to the channel to `peer`
        before it, those apart that are still to come from other LPs. It is at least the earlier of the next event and the
        safe time. A frame without messages goes out only for a promise that grew and has not crossed too many LPs that
        executed nothing.
        """
        frames: list[tuple[int, Frame]] = []
        self._withholds = False
        for peer, channel in self._out.items():
            eots_ps = channel.eots_ps(self._with_transits(peer, earliest_send_ps[peer]))
            grew = channel.beyond_promises(eots_ps)
            if channel.has_pending or (grew and self._hops <= NULL_HOPS):
                frames.append((peer, channel.frame(eots_ps, self._hops)))
            elif grew:
                self._withholds = True
        if frames:
            self._hops = NULL_HOPS + 1
        return tuple(frames)

    def silence(self, next_ps: int) -> SilenceReport | None:
        """The report that this LP owes the collector, given its next event; call it after `frames`.

        None while there are events to execute, while promises still flow and nobody has called, and if it would repeat
        the report before: what has been reported stays true until an event is executed or a message comes.
        """
        finished = min(next_ps, self._safe_ps) >= NEVER_PS
        if next_ps < self._safe_ps or not (self._withholds or self._called or finished):
            return None
        report = SilenceReport(next_ps, self._sent(), self._received())
        if report == self._reported:
            return None
        self._reported = report
        return report

    def grant(self, lbts_ps: int) -> None:
        """No LP executes an event before `lbts_ps` any more. A grant that repeats the last LBTS is a call for reports."""
        if lbts_ps <= self._lbts_ps:
            self._called = True
            return
        self._lbts_ps = lbts_ps
        self._called = False
        self._reported = None
        for channel in self._in.values():
            channel.grant(lbts_ps)
        self._safe_ps = self._least_eit_ps()

    def _with_transits(self, peer: int, earliest_send_ps: Sequence[int]) -> list[int]:
        bounds = list(earliest_send_ps)
        for remaining_hops, ways in enumerate(self._transits.get(peer, ())):
            for way in ways:
                arrival_ps = self._in[way.source].transit_eit_ps(remaining_hops + 1)
                bounds[remaining_hops] = min(
                    bounds[remaining_hops], later_ps(arrival_ps, way.delay_ps)
                )
        return bounds

    def _least_eit_ps(self) -> int:
        return min((channel.eit_ps for channel in self._in.values()), default=NEVER_PS)

    def _sent(self) -> tuple[int, ...]:
        return tuple(self._out[lp].sent if lp in self._out else 0 for lp in range(self.lps))

    def _received(self) -> tuple[int, ...]:
        return tuple(self._in[lp].received if lp in self._in else 0 for lp in range(self.lps))
