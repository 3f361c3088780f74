"""The clocks of `time` warn the user's code, and only that."""

import sys
import time
import timeit
import warnings
from collections.abc import Iterator
from contextvars import copy_context
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from runtime.device.rank.rank_state import RankState, current_rank
from sip_node.clock_warning import CLOCKS, watch_clocks

CLOCK = time.perf_counter


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    module, functions = sys.modules[__name__], {name: getattr(time, name) for name in CLOCKS}
    yield
    time.__class__ = ModuleType
    for name, function in functions.items():
        setattr(time, name, function)
    vars(module)["CLOCK"] = time.perf_counter


def in_a_rank(call: Any, *, tensors: int = 1) -> None:
    state = SimpleNamespace(tensors=tensors, process_group=None)

    def run() -> None:
        current_rank.set(cast("RankState", state))
        call()

    copy_context().run(run)


def _by_attribute() -> float:
    return time.perf_counter()


def _by_name() -> float:
    return CLOCK()


def _in_ns() -> float:
    return time.time_ns()


@pytest.mark.parametrize("call", [_by_attribute, _by_name, _in_ns])
def test_a_measurement_of_the_user_warns_however_the_clock_was_imported(call: Any):
    watch_clocks(1)
    with pytest.warns(UserWarning, match="measures wall time, which is not simulated time"):
        in_a_rank(call)


def test_a_rank_is_warned_once_and_then_the_module_is_as_before():
    watch_clocks(2)
    for _ in range(2):
        with pytest.warns(UserWarning, match="measures wall time") as caught:
            in_a_rank(lambda: (_by_attribute(), _in_ns(), _by_name()))
        assert len(caught) == 1
    assert type(time) is ModuleType


def test_a_rank_that_has_simulated_nothing_and_code_outside_a_rank_are_not_warned():
    watch_clocks(1)
    with warnings.catch_warnings(record=True) as caught:
        in_a_rank(_by_attribute, tensors=0)
        _by_attribute()
        in_a_rank(lambda: time.sleep(0))
    assert caught == []


def test_a_library_gets_the_functions_themselves():
    watch_clocks(1)
    in_a_rank(lambda: timeit.timeit("0", number=1))
    namespace: dict[str, object] = {}
    exec(compile("from time import perf_counter", timeit.__file__, "exec"), namespace)
    assert namespace["perf_counter"] is timeit.default_timer


def test_a_program_may_replace_a_clock(monkeypatch: pytest.MonkeyPatch):
    watch_clocks(1)
    monkeypatch.setattr(time, "time", lambda: 5.0)
    assert time.time() == 5.0
