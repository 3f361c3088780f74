import gc
from collections.abc import Callable, Generator
from sys import getrefcount
from threading import Thread

import pytest

from runtime.core.garbage_collection import (
    collections_suspended,
    finalise_cycles,
    is_collecting,
    refuse_in_collection,
    watch_collections,
)
from tests.support.own_garbage import only_own_garbage


@pytest.fixture(autouse=True)
def _only_own_garbage() -> Generator[None]:
    with only_own_garbage():
        yield


class Cycle:
    """Calls `last` when it dies; only the collector finds it."""

    def __init__(self, last: Callable[[], object]) -> None:
        self._last, self._me = last, self

    def __del__(self) -> None:
        self._last()


def in_a_collection(call: Callable[[], object]) -> None:
    watch_collections()
    Cycle(call)
    gc.collect()


def test_finalisers_of_cycles_run_in_a_collection() -> None:
    seen: list[bool] = []
    in_a_collection(lambda: seen.append(is_collecting()))
    assert (seen, is_collecting()) == ([True], False)


def test_a_collection_inside_a_run_finds_no_cycle() -> None:
    seen: list[str] = []
    with collections_suspended():
        in_a_collection(lambda: seen.append("dead"))
        assert seen == []
    gc.collect()
    assert seen == ["dead"]


@pytest.fixture
def _enabled() -> Generator[None]:
    gc.enable()
    yield
    gc.disable()


@pytest.mark.usefixtures("_enabled")
def test_no_collection_begins_by_itself_inside_a_run() -> None:
    with collections_suspended(), collections_suspended():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_so_behind_a_run() -> None:
    with collections_suspended():
        pass
    assert not gc.isenabled()


@pytest.mark.usefixtures("_enabled")
def test_the_first_collection_behind_a_run_visits_none_of_its_objects() -> None:
    with collections_suspended():
        kept = [[number] for number in range(1000)]
    young = {id(each) for generation in (0, 1) for each in gc.get_objects(generation)}
    assert young.isdisjoint(map(id, kept))


def test_the_collection_of_a_run_finalises_cycles_and_keeps_what_they_refer_to() -> None:
    class Used:
        pass

    seen: list[str] = []
    used = Used()
    with collections_suspended():
        cycle = Cycle(lambda: seen.append("dead"))
        cycle.used = used  # pyright: ignore[reportAttributeAccessIssue] - any attribute
        del cycle
        before = getrefcount(used)
        finalise_cycles()
        assert (seen, getrefcount(used)) == (["dead"], before)
    gc.collect()
    assert (seen, getrefcount(used)) == (["dead"], before - 1)


def test_collections_are_observed_once() -> None:
    watch_collections()
    before = list(gc.callbacks)
    watch_collections()
    assert gc.callbacks == before


def test_another_thread_is_not_in_the_collection() -> None:
    seen: list[bool] = []

    def look() -> None:
        thread = Thread(target=lambda: seen.append(is_collecting()))
        thread.start()
        thread.join()

    in_a_collection(look)
    assert seen == [False]


def test_a_call_in_a_collection_is_refused() -> None:
    errors: list[str] = []

    def call() -> None:
        try:
            refuse_in_collection()
        except RuntimeError as error:
            errors.append(str(error))

    in_a_collection(call)
    refuse_in_collection()
    assert len(errors) == 1
    assert errors[0].startswith("a finaliser called kernbench during a garbage collection")
