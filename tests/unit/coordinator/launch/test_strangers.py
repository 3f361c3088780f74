"""Counts of refused strangers, and the warnings about them."""

from coordinator.launch.strangers import stranger_warnings, strangers_of
from runtime.wire.control import Done, Refused
from tests.support.lp_reports import done_of


def done(lp: int, *refused: Refused) -> Done:
    return done_of(lp, refused=refused)


def test_a_socket_with_strangers_has_one_line_with_each_reason_once() -> None:
    reports = {
        2: done(2, Refused("no password", 1)),
        1: done(1, Refused("a wrong password", 2), Refused("no password", 1)),
        0: done(0),
    }
    strangers = strangers_of(reports, [Refused("it belongs to another run", 1)])
    foreign, end = "of processes that are not of this run", "the result is not affected"
    assert stranger_warnings(strangers) == [
        f"the coordinator refused 1 message {foreign} (1 x it belongs to another run); {end}",
        f"LP 1 refused 3 connections {foreign} (2 x a wrong password; 1 x no password); {end}",
        f"LP 2 refused 1 connection {foreign} (1 x no password); {end}",
    ]


def test_a_run_without_strangers_has_no_line() -> None:
    assert strangers_of({0: done(0), 1: done(1)}, ()) == {}
    assert stranger_warnings({}) == []
