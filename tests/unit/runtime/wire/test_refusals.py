"""Counts of refused strangers: a stranger decides how often it comes, but not what that costs."""

from runtime.wire.control import Refused
from runtime.wire.refusals import Refusals, host_of


def test_a_stranger_with_a_new_reason_each_time_takes_a_bounded_memory() -> None:
    refusals = Refusals()
    for number in range(10_000):
        refusals.add(f"there is no LP {number}")
    assert len(refusals.times) == 17
    assert sum(refusals.times.values()) == 10_000
    assert refusals.times["other reasons"] == 10_000 - 16


def test_what_a_stranger_sends_does_not_control_the_terminal() -> None:
    refusals = Refusals()
    refusals.add("\x1b[2J" + "x" * 10**6)
    (reason,) = refusals.times
    assert reason.startswith("?[2Jxxx")
    assert len(reason) < 130


def test_of_each_host_the_first_address_is_kept_and_of_many_hosts_the_first_sixteen() -> None:
    refusals = Refusals()
    for host in range(100):
        for port in (1, 2):
            refusals.add("no CURVE", f"10.0.0.{host}:{port}")
    (refused,) = refusals.refused
    assert refused == Refused("no CURVE", 200, tuple(f"10.0.0.{host}:1" for host in range(16)))


def test_the_host_of_an_address_is_all_but_the_port() -> None:
    assert host_of("10.0.0.9:51122") == "10.0.0.9"
    assert host_of("[fd00::9]:51122") == "[fd00::9]"
    assert host_of("fd00::9") == "fd00::9"
    assert host_of("pid 4711 (uid 1000)") == "pid 4711 (uid 1000)"
