"""A process that is not of a run reaches its sockets: it is refused and named, and the result, the
digest and the exit code stay.
"""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Event

import pytest
import zmq

from coordinator.report.aggregate import run_digest
from kernbench.benches.ccl_allreduce import ccl_allreduce
from runtime.wire.codec import encode_control
from runtime.wire.control import Hello
from runtime.wire.fields import PROTOCOL_VERSION
from runtime.wire.passwords import Passwords
from tests.support.foreign_frames import FRAMES, MEGABYTE, send_as_a_stranger
from tests.support.runs import Run, kernbench
from tests.support.world import simulate

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

SIZES = {"algorithm": "ring", "min_bytes": 4096, "max_bytes": 4096}
WORDS = ("--sips=2", "--algorithm=ring", "--min-bytes=4096", "--max-bytes=4096")
HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", FRAMES)
def test_a_foreign_frame_is_refused_counted_and_named_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    refused = _refused_beside_foreign_frames([kind], tmp_path, monkeypatch)
    assert all(times >= 1 for of_lp in refused for times in of_lp.values())


def test_foreign_frames_of_every_kind_leave_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    refused = _refused_beside_foreign_frames(list(FRAMES), tmp_path, monkeypatch)
    assert all(times >= len(FRAMES) for of_lp in refused for times in of_lp.values())


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


def _refused_beside_foreign_frames(
    kinds: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, int]]:
    """The refusals of each LP, which its warning has, of a run whose digest stays."""

    def strangers(directory: Path) -> None:
        for lp in range(2):
            passwords = (b"", Passwords("another run").of(1, lp))
            for password, kind in product(passwords, kinds):
                send_as_a_stranger(f"ipc://{directory}/lp{lp}", password, FRAMES[kind])

    run = _run_beside(strangers, tmp_path, monkeypatch)
    assert run.report["strangers"].keys() == {"LP 0", "LP 1"}
    for lp, warning in zip(("LP 0", "LP 1"), _warnings(run), strict=True):
        refused = run.report["strangers"][lp]
        assert refused.keys() == {"a wrong password", "no password"}, refused
        total = sum(refused.values())
        assert warning.startswith(f"kernbench: warning: {lp} refused {total} connections of ")
    return list(run.report["strangers"].values())


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
