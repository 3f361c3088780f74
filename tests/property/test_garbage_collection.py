"""Random programs with tensors in reference cycles give one result, whenever Python collects them.

A program is a list of steps, drawn once. A run adds collections of one rank at random steps, a
setting of the collector, and a partition into LPs.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from runtime import DPPolicy, tl, torch
from tests.support.lps import reports_of
from tests.support.topologies import variant_text

dist = torch.distributed
SIPS = 3
MACHINE = variant_text(
    system__sips__count=SIPS,
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
ALONE = ((0, 1, 2),)
DEALS = [ALONE, ((0, 2), (1,)), ((0,), (1,), (2,))]
Action = Literal[
    "make", "drop", "drop in a cycle", "put in a dead cycle", "launch", "reduce", "fail"
]
Cycle = Literal["itself", "object array", "function", "exception", "finaliser"]
GARBAGE: list[Cycle] = ["itself", "object array", "function", "exception", "finaliser"]


@dataclass(frozen=True)
class Step:
    """One action, on the live tensor `number`; on every rank, or on `rank` alone."""

    action: Action
    number: int
    numel: int
    cycle: Cycle
    rank: int | None


@dataclass(frozen=True)
class Collector:
    """`gc.collect()` in `rank` before each of `steps`, and the thresholds; None: not enabled."""

    rank: int = 0
    steps: frozenset[int] = frozenset()
    threshold: int | None = None


OFF = Collector()
steps = st.lists(
    st.builds(
        Step,
        action=st.sampled_from(
            [
                *["make"] * 3,
                *["drop in a cycle"] * 2,
                *["drop", "put in a dead cycle", "launch", "reduce", "fail"],
            ]
        ),
        number=st.integers(0, 5),
        numel=st.sampled_from([1, 40, 1000]),
        cycle=st.sampled_from(GARBAGE),
        rank=st.sampled_from([None, None, 0, 1]),
    ),
    min_size=6,
    max_size=11,
)
collectors = st.builds(
    Collector,
    rank=st.integers(0, SIPS - 1),
    steps=st.frozensets(st.integers(0, 10), min_size=3, max_size=7),
    threshold=st.sampled_from([None, 50, 700]),
)


class _Node:
    """An object for cycles."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor: Any = tensor
        self.me = self


class _Finalised(_Node):
    """A node whose finaliser calls the API, which must refuse the call in a collection."""

    def __del__(self) -> None:
        try:
            torch.ones(500)
        except RuntimeError:
            return
        raise AssertionError("a finaliser in a collection has allocated memory")


def _fail(tensor: torch.Tensor) -> None:
    """Raise an error whose traceback keeps this frame, and so the tensor."""
    raise ValueError(tensor.name)


def _forget(tensor: torch.Tensor, cycle: Cycle) -> None:
    """Drop the last reference to a tensor that only the collector finds."""
    match cycle:
        case "itself":
            tensor.me = tensor  # pyright: ignore[reportAttributeAccessIssue] - users may
        case "object array":
            # The collector does not look into arrays: the tensor dies by reference count, but when
            # the collector deletes the array.
            node = _Node(tensor)
            node.tensor = np.empty(1, object)
            node.tensor[0] = tensor
        case "function":

            def again() -> object:
                return again, tensor

        case "exception":
            try:
                _fail(tensor)
            except ValueError as error:
                # A cycle: the error has this frame, which now has the error.
                kept = error
                assert kept
        case "finaliser":
            _Finalised(tensor)


def run_of(
    program: list[Step], deal: tuple[tuple[int, ...], ...], collector: Collector, *, data: bool
) -> tuple[list[tuple[object, ...]], dict[int, list[int]]]:
    """Digest, time and counters of every SIP; the addresses of all tensors of every rank."""
    addresses: dict[int, list[int]] = {rank: [] for rank in range(SIPS)}

    def main(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        live: list[torch.Tensor] = []
        for index, step in enumerate(program):
            if rank == collector.rank and index in collector.steps:
                gc.collect()
            if step.rank in {None, rank}:
                _take(step, live, addresses[rank])
        torch.ahbm.synchronize()

    with _collecting(collector.threshold):
        reports = reports_of(main, deal, MACHINE, seed=len(program), data=data)
    assert [(report.finished, report.broken_law) for report in reports] == [(True, "")] * SIPS
    return [
        (report.digest, report.time_ps, sorted(report.counters.items())) for report in reports
    ], addresses


def _take(step: Step, live: list[torch.Tensor], addresses: list[int]) -> None:
    made = DPPolicy(num_pes=1 + step.number % 2)
    if step.action == "reduce":
        # All ranks or none. Dropped at once: the collective holds it until it is complete.
        if step.rank is None:
            dist.all_reduce(torch.ones(step.numel, dp=made), async_op=True)
        return
    if step.action == "make" or not live:
        live.append(torch.ones(step.numel, dp=made))
        addresses += [live[-1].address, *(shard.address for shard in live[-1].shards)]
        return
    number = step.number % len(live)
    match step.action:
        case "drop":
            del live[number]
        case "drop in a cycle":
            _forget(live.pop(number), step.cycle)
        case "put in a dead cycle":
            # A collection that deleted the cycle would leave one reference, which is dropped later.
            _Node(live[number])
        case "launch":
            captured = torch.ones(step.numel)

            def add(x: tl.Pointer, n: int) -> None:
                tl.store(x, tl.load(x, n) + captured.numel())

            torch.launch("add", add, live[number], 1)
        case "fail":
            with suppress(ValueError):
                _fail(torch.ones(step.numel))


@contextmanager
def _collecting(threshold: int | None) -> Generator[None]:
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    # A collection then searches the objects of this run only, which takes a hundredth of the time.
    gc.freeze()
    if threshold is None:
        gc.disable()
    else:
        gc.enable()
        gc.set_threshold(threshold, 2, 2)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        (gc.enable if enabled else gc.disable)()
        gc.unfreeze()


@pytest.mark.slow
# Without shrinking: a failure would take minutes, and its program is short.
@settings(max_examples=100, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(steps, st.sampled_from(DEALS), collectors)
def test_the_moment_of_garbage_collection_changes_no_address_time_or_digest(
    program: list[Step], deal: tuple[tuple[int, ...], ...], collector: Collector
) -> None:
    reports, addresses = run_of(program, ALONE, OFF, data=True)
    assert run_of(program, deal, collector, data=True) == (reports, addresses)
    without_data, same_addresses = run_of(program, ALONE, collector, data=False)
    assert same_addresses == addresses
    assert [time_ps for _, time_ps, _ in without_data] == [time_ps for _, time_ps, _ in reports]


def test_a_tensor_in_a_dead_cycle_keeps_its_memory_when_it_is_dropped_later() -> None:
    program = [
        Step(action=action, number=0, numel=100, cycle="itself", rank=None)
        for action in ("make", "put in a dead cycle", "drop", "make", "make")
    ]
    expected = run_of(program, ALONE, OFF, data=False)
    assert run_of(program, ALONE, Collector(1, frozenset({2})), data=False) == expected


@pytest.mark.parametrize("cycle", GARBAGE)
def test_memory_of_every_kind_of_garbage_stays_in_use_after_a_collection(cycle: Cycle) -> None:
    program = [
        Step(action=action, number=0, numel=100, cycle=cycle, rank=None)
        for action in ("make", "drop in a cycle", "make", "make")
    ]
    expected = run_of(program, ALONE, OFF, data=False)
    assert run_of(program, ALONE, Collector(1, frozenset({2, 3})), data=False) == expected
