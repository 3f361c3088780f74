"""A process that is not of a run reaches its sockets: it is refused and named, and the result, the
digest and the exit code stay.
"""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from threading import Event

import pytest
import zmq

from coordinator.aggregate import run_digest
from kernbench.benches.ccl_allreduce import ccl_allreduce
from runtime.wire.codec import encode_control, encode_peer
from runtime.wire.control import Hello
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.frames import Frame, Grant, Message
from runtime.wire.passwords import Passwords
from tests.support.runs import Run, kernbench
from tests.support.world import simulate

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

SIZES = {"algorithm": "ring", "min_bytes": 4096, "max_bytes": 4096}
WORDS = ("--sips=2", "--algorithm=ring", "--min-bytes=4096", "--max-bytes=4096")
NEVER = Frame((1 << 62,), 0)
FIRST = encode_peer(1, 0, Frame((10**6,), 0))
SECOND = encode_peer(1, 1, Frame((2 * 10**6,), 0))
MEGABYTE = bytes(range(256)) * 4096
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

FRAMES: dict[str, list[list[bytes]]] = {
    "garbage": [[MEGABYTE]] * 20,
    "truncated": [[FIRST[:-3]]],
    "of another run": [[FIRST], [SECOND]],
    "a second copy": [[FIRST], [FIRST]],
    "copies in another order": [[SECOND], [FIRST]],
    "a forged promise": [[encode_peer(1, 0, NEVER)]],
    "a forged grant": [[encode_peer(0, 0, Grant(1 << 62, True))]],
    "a forged message": [[encode_peer(1, 0, Frame((1,), 0, (Message(1, 1, 0, 0, b"x"),)))]],
    "for another LP": [[encode_peer(1, 0, Frame((1,), 0, (Message(1, 1, 7, 0),)))]],
    "two parts": [[FIRST, SECOND]],
    "8 MiB": [[MEGABYTE * 8]],
}
"""Messages of one or more parts."""


@pytest.mark.nightly
@pytest.mark.parametrize("kind", FRAMES)
def test_a_foreign_frame_is_refused_counted_and_named_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _run_beside_foreign_frames([kind], tmp_path, monkeypatch)


def test_foreign_frames_of_every_kind_leave_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _run_beside_foreign_frames(list(FRAMES), tmp_path, monkeypatch)


def test_strangers_at_the_control_socket_are_refused_and_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def strangers(directory: Path) -> None:
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.linger = 1000
            stranger.connect(f"ipc://{directory}/control.sock")
            hello = Hello(PROTOCOL_VERSION, "another run", 1, 1, "ipc://stranger")
            for _ in range(200):
                stranger.send(encode_control(hello))
            stranger.send(MEGABYTE)
            stranger.send_multipart([b"a", b"b"])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{directory}/control.sock")
            connection.sendall(HTTP)

    run = _run_beside(strangers, tmp_path, monkeypatch)
    reasons = run.report["strangers"].pop("the coordinator")
    assert run.report["strangers"].keys() == {"the coordinator"}
    assert reasons["it belongs to another run"] == 200
    assert reasons["a control message of 2 parts, not 1"] == 1
    (warning,) = _warnings(run)
    assert "the coordinator refused 20" in warning
    assert "200 x it belongs to another run" in warning


def _run_beside_foreign_frames(
    kinds: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strangers(directory: Path) -> None:
        for lp in range(2):
            passwords = (b"", Passwords("another run").of(1, lp))
            for password, kind in product(passwords, kinds):
                _send_as_a_stranger(f"ipc://{directory}/lp{lp}", password, FRAMES[kind])

    run = _run_beside(strangers, tmp_path, monkeypatch)
    assert run.report["strangers"].keys() == {"LP 0", "LP 1"}
    for lp, warning in zip(("LP 0", "LP 1"), _warnings(run), strict=True):
        refused = run.report["strangers"][lp]
        # A socket of ZeroMQ may try again.
        assert refused.keys() == {"a wrong password", "no password"}
        assert all(times >= len(kinds) for times in refused.values())
        total = sum(refused.values())
        assert warning.startswith(f"kernbench: warning: {lp} refused {total} connections of ")


def _send_as_a_stranger(endpoint: str, password: bytes, messages: list[list[bytes]]) -> None:
    """Send messages from a socket of its own, until that is refused."""
    with zmq.Context.instance().socket(zmq.PUSH) as stranger:
        stranger.linger = 0
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


def _run_beside(
    strangers: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """A run of two LPs, whose sockets `strangers` reach while it starts."""
    ended = Event()

    def reach(directory: Path) -> None:
        while len(found := list(directory.glob("*/lp[01]"))) < 2:
            assert not ended.wait(0.001), "the run has ended"
        strangers(found[0].parent)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        reached = pool.submit(reach, tmp_path)
        run = kernbench(tmp_path / "run", *WORDS)
        ended.set()
        assert reached.exception() is None
    assert run.code == 0, run.err
    alone = simulate(lambda rank: ccl_allreduce(rank, **SIZES), 2)
    assert run.report["digest"] == run_digest(alone.done.sips)
    return run


def _warnings(run: Run) -> list[str]:
    return [line for line in run.err.splitlines() if "warning" in line]
