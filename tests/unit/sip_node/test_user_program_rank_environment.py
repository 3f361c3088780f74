"""Each of several ranks in a process has the variables of torchrun in `os.environ`."""

import os
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import TypeVar

import pytest
from msgspec.structs import replace

from runtime.wire.control import Job
from runtime.wire.environment import RankPlace, rank_environment
from sip_node.user_program import own_variables, provide_variables, rank_place
from tests.support.lps import peers_of

T = TypeVar("T")
JOB = Job(
    topology=b"",
    ccl=b"",
    program="",
    kind="script",
    arguments={},
    argv=(),
    data=True,
    trace=True,
    jitter_seed=0,
    jitter_ms=0.0,
)
BOTH = [RankPlace.on_one_host(rank, 2) for rank in range(2)]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kind = os.environ.__class__
    for name in rank_environment(RankPlace.on_one_host(0, 1), script=True):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    yield
    os.environ.__class__ = kind
    os.environ.clear()
    os.environ.update(before)


def as_rank(rank: int, call: Callable[[], T]) -> T:
    def run() -> T:
        own_variables.set(rank_environment(RankPlace.on_one_host(rank, 2), script=True))
        return call()

    return copy_context().run(run)


def test_a_rank_alone_in_its_process_has_ordinary_variables():
    provide_variables([RankPlace.on_one_host(1, 4)], script=True)
    assert {
        name: os.environ[name]
        for name in rank_environment(RankPlace.on_one_host(1, 4), script=True)
    } == {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "LOCAL_WORLD_SIZE": "4",
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": "1",
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
    }


def test_a_spawned_function_keeps_the_address_of_its_parent_and_is_not_from_torchrun():
    os.environ["MASTER_ADDR"] = "localhost"
    provide_variables([RankPlace.on_one_host(0, 2)], script=False)
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("localhost", "29500")
    assert "TORCHELASTIC_RUN_ID" not in os.environ


def test_ranks_that_share_a_process_see_and_change_their_own_variables():
    environ, getenv = os.environ, os.getenv
    provide_variables(BOTH, script=True)
    assert [as_rank(rank, lambda: environ["RANK"]) for rank in (0, 1)] == ["0", "1"]
    assert as_rank(1, lambda: (getenv("LOCAL_RANK"), environ.copy()["RANK"])) == ("1", "1")
    assert as_rank(1, lambda: getenv("MASTER_PORT")) == "29500"

    def change() -> tuple[str | None, bool]:
        environ["RANK"] = "7"
        del environ["LOCAL_RANK"]
        environ["OTHER"] = "x"
        return environ.get("RANK"), "LOCAL_RANK" in environ

    assert as_rank(0, change) == ("7", False)
    assert as_rank(1, lambda: (environ["RANK"], environ["OTHER"])) == ("1", "x")
    assert as_rank(1, lambda: len(environ) == len(list(environ)) == len(dict(environ)))


def test_outside_a_rank_the_process_has_none_of_them():
    provide_variables(BOTH, script=True)
    assert "RANK" not in os.environ
    os.environ["RANK"] = "5"
    assert "RANK" in list(os.environ)
    del os.environ["RANK"]
    with pytest.raises(KeyError, match="RANK"):
        os.environ["RANK"]


def test_ranks_of_two_hosts_have_their_host_and_their_number_there():
    peers = replace(peers_of([[0, 1], [2], [3, 4]], JOB), hosts=(0, 0, 1))
    assert [rank_place(peers, rank, 4) for rank in (2, 3)] == [
        RankPlace(rank=2, world_size=4, local_rank=2, local_world_size=3, host=0, hosts=2),
        # SIP 4 has no rank.
        RankPlace(rank=3, world_size=4, local_rank=0, local_world_size=1, host=1, hosts=2),
    ]


def test_a_launcher_on_several_hosts_gives_the_address_of_the_master():
    os.environ["MASTER_ADDR"] = "10.0.0.1"
    provide_variables([RankPlace(3, 4, 0, 1, 1, 2)], script=True)
    assert (os.environ["MASTER_ADDR"], os.environ["GROUP_RANK"]) == ("10.0.0.1", "1")
