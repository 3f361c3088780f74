"""Both ends of the control channel over a real socket: `Control` and `Rendezvous`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.launch.rendezvous import Rendezvous
from runtime.core.errors import ProtocolError, RunAborted, UsageError
from runtime.core.wallclock import cpu_s
from runtime.wire.control import (
    Abort,
    Busy,
    Bye,
    Hello,
    RankActivity,
    Ready,
    Refused,
    Start,
    Status,
)
from runtime.wire.environment import COORDINATOR_PID
from runtime.wire.fields import PROTOCOL_VERSION
from sip_node.control import Control

RUN = "0123"


@pytest.fixture
def endpoint(tmp_path: Path) -> str:
    return f"ipc://{tmp_path}/c.sock"


@pytest.fixture
def rendezvous(endpoint: str) -> Iterator[Rendezvous]:
    with Rendezvous([endpoint], RUN, 2) as rendezvous:
        yield rendezvous


@pytest.fixture
def control(
    endpoint: str, rendezvous: Rendezvous, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Control]:
    # As an LP that its coordinator started: it need not follow the connection.
    monkeypatch.setenv(COORDINATOR_PID, "1")
    control = Control(endpoint, RUN, 1, patience_s=5.0)
    yield control
    control.close()


def hello(lp: int = 1, run_id: str = RUN, protocol: int = PROTOCOL_VERSION) -> Hello:
    return Hello(protocol, run_id, lp, 4711, "ipc://data")


def receive(rendezvous: Rendezvous):
    return rendezvous.receive(5.0)


def test_an_lp_is_identified_by_its_hello(rendezvous: Rendezvous, control: Control):
    control.send(hello())
    control.ready("cafe")
    assert receive(rendezvous) == (1, hello())
    assert receive(rendezvous) == (1, Ready(1, "cafe"))


def test_an_lp_waits_for_start_and_bye(rendezvous: Rendezvous, control: Control):
    control.send(hello())
    receive(rendezvous)
    rendezvous.broadcast(Start())
    control.wait_start()
    rendezvous.send(1, Bye())
    control.finish()
    assert control.socket.poll(0) == 0, "both have been taken"


def test_an_abort_ends_every_wait_with_the_reason(rendezvous: Rendezvous, control: Control):
    control.send(hello())
    receive(rendezvous)
    rendezvous.broadcast(Abort("rank 0 raised"))
    with pytest.raises(RunAborted, match="rank 0 raised"):
        control.wait_start()


def test_a_check_is_silent_until_the_coordinator_aborts(rendezvous: Rendezvous, control: Control):
    control.send(hello())
    receive(rendezvous)
    control.check()
    rendezvous.broadcast(Abort("enough"))
    control.socket.poll(5000)
    with pytest.raises(RunAborted, match="enough"):
        control.check()


def test_a_message_out_of_turn_is_a_protocol_error_of_the_coordinator(
    rendezvous: Rendezvous, control: Control
):
    control.send(hello())
    receive(rendezvous)
    rendezvous.broadcast(Bye())
    with pytest.raises(ProtocolError, match="Bye where Start is due"):
        control.wait_start()


def test_waiting_for_the_coordinator_has_an_end(
    rendezvous: Rendezvous, endpoint: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(COORDINATOR_PID, "1")
    control = Control(endpoint, RUN, 0, patience_s=0.01)
    with pytest.raises(RunAborted, match=r"did not send Start within 0\.01 s"):
        control.wait_start()
    control.close()


def test_status_is_due_a_few_times_a_second_however_often_the_lp_checks(
    rendezvous: Rendezvous, control: Control
):
    control.send(hello())
    for _ in range(50):
        if control.status_is_due():
            control.report_status(Status(1, 5, 6, 0.5))
    control.ready("end")
    receive(rendezvous)
    assert receive(rendezvous) == (1, Status(1, 5, 6, 0.5))
    assert receive(rendezvous) == (1, Ready(1, "end"))


@pytest.mark.parametrize(("used_s", "pause_s"), [(0.001, 0.25), (0.1, 5.0)])
def test_a_status_that_takes_long_to_collect_is_reported_less_often(
    control: Control, monkeypatch: pytest.MonkeyPatch, used_s: float, pause_s: float
):
    """A fiftieth of the time at most; the clock stands still between the readings here."""
    clock = iter((10.0, 10.0 + pause_s - 0.001, 10.0 + pause_s + 0.001))
    monkeypatch.setattr("sip_node.control.now_s", lambda: next(clock))
    control.report_status(Status(1, 5, 6, 0.5), used_s)
    assert [control.status_is_due(), control.status_is_due()] == [False, True]


@pytest.mark.parametrize(
    ("stranger", "reason"),
    [
        (hello(run_id="other"), "it belongs to another run"),
        (hello(lp=2), "there is no LP 2, the run has 2"),
        (hello(lp=-1), "malformed message: field lp: Expected `int` >= 0"),
        (Ready(1, ""), "Ready before Hello"),
    ],
)
def test_a_stranger_receives_the_reason_of_its_refusal(
    rendezvous: Rendezvous, control: Control, stranger, reason: str
):
    control.send(stranger)
    assert receive(rendezvous) is None
    assert [each.reason for each in rendezvous.refusals] == [reason]
    with pytest.raises(RunAborted, match=reason):
        control.wait_start()


def test_bytes_of_a_stranger_that_are_no_message_are_refused(
    rendezvous: Rendezvous, control: Control
):
    control.socket.send_multipart([b"\xc1", b""])
    assert receive(rendezvous) is None
    control.socket.send(b"\xc1")
    assert receive(rendezvous) is None
    assert len(rendezvous.refusals) == 2


def test_a_stranger_that_does_not_read_is_answered_a_limited_number_of_times(
    rendezvous: Rendezvous, control: Control
):
    for _ in range(200):
        control.send(hello(run_id="other"))
    for _ in range(200):
        assert receive(rendezvous) is None
    (refused,) = rendezvous.refusals
    own = f"pid {os.getpid()} (uid {os.getuid()})"
    assert refused == Refused("it belongs to another run", 200, (own,))
    answers = 0
    while control.socket.poll(50):
        control.socket.recv()
        answers += 1
    assert answers == 64


def test_an_endpoint_that_cannot_be_created_is_one_line(tmp_path: Path):
    with pytest.raises(UsageError, match=r"TMPDIR: cannot create ipc://.*: No such file"):
        Rendezvous([f"ipc://{tmp_path}/missing/c.sock"], RUN, 1)


def test_an_lp_joins_once(rendezvous: Rendezvous, control: Control, endpoint: str):
    second = Control(endpoint, RUN, 1)
    control.send(hello())
    assert receive(rendezvous)
    second.send(hello())
    assert receive(rendezvous) is None
    assert [each.reason for each in rendezvous.refusals] == ["LP 1 has joined already"]
    second.close()


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (hello(), "it sends Hello a second time"),
        (hello(lp=0), "it sends as LP 0"),
        (Status(0, 1, 2, 0.0), "it sends as LP 0"),
    ],
)
def test_an_lp_that_has_joined_must_keep_to_the_protocol(
    rendezvous: Rendezvous, control: Control, message, problem
):
    control.send(hello())
    receive(rendezvous)
    control.send(message)
    with pytest.raises(ProtocolError, match=problem):
        receive(rendezvous)


def test_another_version_of_the_protocol_ends_the_run(rendezvous: Rendezvous, control: Control):
    control.send(hello(protocol=99))
    with pytest.raises(
        ProtocolError, match=f"it uses protocol 99, this coordinator {PROTOCOL_VERSION}"
    ):
        receive(rendezvous)
    with pytest.raises(RunAborted, match="refused"):
        control.wait_start()


def test_sending_to_an_lp_that_has_not_joined_has_no_effect(
    rendezvous: Rendezvous, control: Control
):
    rendezvous.send(0, Start())
    control.send(hello())
    receive(rendezvous)
    assert control.socket.poll(50) == 0


def test_a_report_of_a_busy_lp_comes_on_another_connection(
    rendezvous: Rendezvous, control: Control
):
    control.send(hello())
    receive(rendezvous)
    ranks = (RankActivity(1, 2.5, ()),)
    control.send_busy(2.0, ranks, imports=True)
    lp, busy = receive(rendezvous)
    assert isinstance(busy, Busy)
    assert (lp, busy.stretch_s, busy.imports, busy.ranks) == (1, 2.0, True, ranks)
    # The processor time of this process is less than that of the kernel's clock, plus a tick.
    assert 0 < busy.used_s <= cpu_s() + 0.02
    control.send(Ready(1, "cafe"))
    assert receive(rendezvous) == (1, Ready(1, "cafe"))


def test_a_busy_stranger_is_refused(rendezvous: Rendezvous, endpoint: str, control: Control):
    control.send_busy(2.0, (), imports=False)
    assert receive(rendezvous) is None
    assert [each.reason for each in rendezvous.refusals] == ["Busy before Hello"]
