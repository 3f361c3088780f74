"""An LP of two for tests of `Sync`, and what it receives and sends."""

from runtime.wire.frames import Frame, Message
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sync import Sync


def two_way(lookahead_ps: int = 10) -> Sync:
    """LP 0 of two, with a channel each way."""
    return Sync(0, 2, {1: lookahead_ps}, {1: lookahead_ps})


def message(time_ps: int, seq: int = 1) -> Message:
    return Message(time_ps, 1, 0, seq)


def bounds(*of_peers: tuple[int, ...]) -> list[SendBound]:
    """Bounds from (peer, time for 0 remaining hops, time for 1, ...)."""
    return [
        SendBound(peer, remaining_hops, time_ps)
        for peer, *times_ps in of_peers
        for remaining_hops, time_ps in enumerate(times_ps)
    ]


def promise(time_ps: int, null_hops: int = 0) -> Frame:
    return Frame((time_ps,), null_hops)
