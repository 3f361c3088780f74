"""A process that is not of a run and reaches its tcp sockets; each kind returns when it is refused.

`python -m tests.support.strangers KIND ENDPOINT ...`, with the id of the run in `RUN_ID`.
"""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import zmq

from runtime.wire.codec import decode_from_coordinator, encode_control
from runtime.wire.control import Abort, Hello
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.passwords import Passwords
from tests.support.foreign_frames import FRAMES

RUN_ID = "RUN_ID"
REFUSED_S = 10.0
_HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
_REFUSED = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)


def without_curve(endpoint: str, run_id: str) -> None:
    """Sends every foreign frame as a plain socket of ZeroMQ."""
    for messages in FRAMES.values():
        _send(endpoint, messages, lambda _: None)


def with_a_wrong_server_key(endpoint: str, run_id: str) -> None:
    """Sends every foreign frame with keys of another run."""
    own = _public(Passwords("another run").curve_secret)
    for messages in FRAMES.values():
        _send(endpoint, messages, lambda stranger: _encrypt(stranger, "another run", own))


def with_a_wrong_client_key(endpoint: str, run_id: str) -> None:
    """Sends every foreign frame, with the public key of the run."""
    server = _public(Passwords(run_id).curve_secret)
    for messages in FRAMES.values():
        _send(endpoint, messages, lambda stranger: _encrypt(stranger, "another run", server))


def by_http(endpoint: str, run_id: str) -> None:
    """Sends a request of HTTP, and reads until the connection ends."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=REFUSED_S) as connection:
        connection.sendall(_HTTP)
        with suppress(ConnectionResetError):
            while connection.recv(4096):
                pass


def replaying_a_hello(endpoint: str, run_id: str) -> None:
    """A process with the key of the run sends the Hello of LP 1 once more."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.linger = 0
        stranger.rcvtimeo = int(1000 * REFUSED_S)
        _encrypt(stranger, run_id, _public(Passwords(run_id).curve_secret))
        stranger.connect(endpoint)
        stranger.send(encode_control(Hello(PROTOCOL_VERSION, run_id, 1, os.getpid(), endpoint)))
        answer = decode_from_coordinator(stranger.recv(), "the coordinator")
        assert isinstance(answer, Abort), answer


KINDS: dict[str, Callable[[str, str], None]] = {
    "no CURVE": without_curve,
    "a wrong server key": with_a_wrong_server_key,
    "a wrong client key": with_a_wrong_client_key,
    "not ZeroMQ": by_http,
    "LP 1 has joined already": replaying_a_hello,
}
"""Strangers by the reason for which each is refused."""


def _send(
    endpoint: str, messages: list[list[bytes]], prepare: Callable[[zmq.Socket[bytes]], object]
) -> None:
    """Send messages by a socket of their own, which connects once, until it is refused."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.linger = 0
        stranger.reconnect_ivl = -1
        refusal = stranger.get_monitor_socket(_REFUSED)
        prepare(stranger)
        stranger.connect(endpoint)
        for parts in messages:
            # A stranger that has been refused cannot send.
            with suppress(zmq.Again):
                stranger.send_multipart(parts, zmq.NOBLOCK)
        refused = refusal.poll(int(1000 * REFUSED_S))
        stranger.disable_monitor()
        refusal.close()
        assert refused, f"{endpoint} has not refused a stranger within {REFUSED_S} s"


def _encrypt(stranger: zmq.Socket[bytes], run_id: str, server_key: bytes) -> None:
    secret = Passwords(run_id).curve_secret
    stranger.curve_secretkey, stranger.curve_publickey = secret, _public(secret)
    stranger.curve_serverkey = server_key


def _public(secret_key: bytes) -> bytes:
    return zmq.curve_public(secret_key)


if __name__ == "__main__":
    _, kind, *endpoints = sys.argv
    for each in endpoints:
        KINDS[kind](each, os.environ[RUN_ID])
