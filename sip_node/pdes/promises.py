"""Promises by remaining hops: the earliest output time (EOT) of every channel that leaves an LP.

The *remaining hops* of a message on a channel are the further channels which it crosses after this
one. Routes are fixed, so the number is known for every message. A channel c has one promise for
each number n: no later message with n or more remaining hops arrives before it. The promise for
n = 0 holds for all messages, and promises do not decrease with n.

    EOT(c, n) = lookahead(c) + min( own(c, n),
                                    min over p in paths(c, n) of EIT(p.source, n + 1) + p.delay )

- own(c, n): no event of this LP hands a message with n or more remaining hops to c before this
  time, messages apart which have not arrived yet and are only forwarded.
- paths(c, n): the forwarding paths from in-channels to c of messages which have n or more
  remaining hops on c. Such a message has at least n + 1 remaining hops on the channel on which it
  arrives, so it arrives no earlier than the promise for n + 1 which was received there.

So a promise for n depends on promises for n + 1 only, and the promise for the longest routes
depends on the LP's own events: there is no cycle, and promises do not creep around a ring.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from runtime.core.simtime import NEVER_PS
from sip_node.kernel.exact import later_ps
from sip_node.pdes.channel import InChannel, OutChannel


class SendBound(NamedTuple):
    """No event hands a message with `remaining_hops` to the channel to `peer` before `time_ps`."""

    peer: int
    remaining_hops: int
    time_ps: int


class ForwardingPath(NamedTuple):
    """A path of messages through an LP: they come from LP `source` and leave `delay_ps` later."""

    source: int
    delay_ps: int


ForwardingPaths = Mapping[int, Sequence[Sequence[ForwardingPath]]]
"""Peer LP -> for n = 0, 1, ...: paths(channel to the peer, n)."""


class EarliestOutput:
    """EOT(c, n) for all out-channels of an LP, by the formula above."""

    def __init__(
        self,
        in_channels: Mapping[int, InChannel],
        out_channels: Mapping[int, OutChannel],
        paths: ForwardingPaths,
    ) -> None:
        self._in = in_channels
        self._out = out_channels
        # A channel without forwarded messages has one promise, for n = 0, and no path to it.
        self._paths = {peer: paths.get(peer, ((),)) for peer in out_channels}

    def times_ps(self, own: Iterable[SendBound]) -> dict[int, tuple[int, ...]]:
        """Peer LP -> EOT for n = 0, 1, ..., from the bounds of this LP's own events.

        EOT is never before the promise made, since that stays true. A channel without a bound of
        its own carries only forwarded messages.
        """
        # NEVER_PS: without a bound the LP itself sends no message with this number.
        own_ps = {peer: [NEVER_PS] * len(paths) for peer, paths in self._paths.items()}
        for peer, remaining_hops, time_ps in own:
            bounds_ps = own_ps[peer]
            bounds_ps[remaining_hops] = min(bounds_ps[remaining_hops], time_ps)
        return {peer: self._of_channel(peer, bounds_ps) for peer, bounds_ps in own_ps.items()}

    def forwarded_ps(self) -> int:
        """No message that is only forwarded, and has not arrived, is handed on before this time."""
        return min(
            (
                later_ps(self._in[source].eit_of(1), delay_ps)
                for paths in self._paths.values()
                for source, delay_ps in paths[0]
            ),
            default=NEVER_PS,
        )

    def _of_channel(self, peer: int, own_ps: Sequence[int]) -> tuple[int, ...]:
        channel, paths = self._out[peer], self._paths[peer]
        if len(paths) == 1 and not paths[0]:
            # Nothing is forwarded to this channel: most often so, and this is the cost of a round.
            eot_ps = later_ps(own_ps[0], channel.lookahead_ps)
            return (max(channel.promise_of(0), eot_ps),)
        eots_ps: list[int] = []
        send_ps = NEVER_PS
        for n in reversed(range(len(own_ps))):
            # "n or more": a bound for more remaining hops bounds this promise, too.
            send_ps = min(send_ps, own_ps[n])
            for source, delay_ps in paths[n]:
                send_ps = min(send_ps, later_ps(self._in[source].eit_of(n + 1), delay_ps))
            eots_ps.append(max(channel.promise_of(n), later_ps(send_ps, channel.lookahead_ps)))
        return tuple(reversed(eots_ps))
