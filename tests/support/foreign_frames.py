"""Frames that a process which is not of a run sends to the socket of an LP."""

from contextlib import suppress

import zmq

from runtime.wire.codec import encode_peer
from runtime.wire.frames import Frame, Grant, Message

NEVER = Frame((1 << 62,), 0)
FIRST = encode_peer(1, 0, Frame((10**6,), 0))
SECOND = encode_peer(1, 1, Frame((2 * 10**6,), 0))
MEGABYTE = bytes(range(256)) * 4096

FRAMES: dict[str, list[list[bytes]]] = {
    "garbage": [[MEGABYTE]] * 20,
    "truncated": [[FIRST[:-3]]],
    "of another run": [[FIRST], [SECOND]],
    "a second copy": [[FIRST], [FIRST]],
    "copies in another order": [[SECOND], [FIRST]],
    "a forged promise": [[encode_peer(1, 0, NEVER)]],
    "a forged grant": [[encode_peer(0, 0, Grant(1 << 62, of_run=True))]],
    "a forged message": [[encode_peer(1, 0, Frame((1,), 0, (Message(1, 1, 0, 0, b"x"),)))]],
    "for another LP": [[encode_peer(1, 0, Frame((1,), 0, (Message(1, 1, 7, 0),)))]],
    "two parts": [[FIRST, SECOND]],
    "8 MiB": [[MEGABYTE * 8]],
}
"""Messages of one or more parts."""


def send_as_a_stranger(endpoint: str, password: bytes, messages: list[list[bytes]]) -> None:
    """Send messages from a socket of its own, until that is refused."""
    with zmq.Context.instance().socket(zmq.PUSH) as stranger:
        stranger.linger = 0
        # A second attempt, which the end of the socket interrupts, has a reason of its own.
        stranger.reconnect_ivl = -1
        refusal = stranger.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        if password:
            stranger.plain_username, stranger.plain_password = b"1", password
        stranger.connect(endpoint)
        for parts in messages:
            # A stranger that has been refused cannot send.
            with suppress(zmq.Again):
                stranger.send_multipart(parts, zmq.NOBLOCK)
        refused = refusal.poll(5000)
        stranger.disable_monitor()
        refusal.close()
        assert refused
