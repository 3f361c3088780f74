"""Launches that are repeated: which are, what disturbs one, and that nothing else differs."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from itertools import product as product_of
from typing import Any

import numpy as np
import pytest

from runtime import tl, torch
from runtime.core.compiled.choice import IS_COMPILED
from runtime.device.rank.rank_state import running_rank
from runtime.language.functions import COMPARISONS, ELEMENTWISE, REDUCTIONS, SCANS
from sip_node.chip.launches import launch_templates, learned_launch
from tests.support.repeated_launches import (
    MESH,
    ONE,
    PES,
    ROWS,
    SIZE,
    Program,
    compared,
    own_start,
    tensor,
)
from tests.support.topologies import variant_text

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="launches are repeated by the core in C")


@pytest.fixture(params=["records", "no-records"])
def record(request: pytest.FixtureRequest) -> bool:
    return request.param == "records"


def doubled(x: tl.Pointer, y: tl.Pointer, size: int) -> None:
    tl.store(own_start(y, size), tl.load(own_start(x, size), size) * 2)


def added(x: tl.Pointer, y: tl.Pointer, z: tl.Pointer, size: int) -> None:
    """Kernel: both loads are at the memory at one time."""
    loads = tl.load_async(x, size), tl.load_async(y, size)
    tl.store(z, loads[0].wait() + loads[1].wait())


def looked_up(x: tl.Pointer, y: tl.Pointer, z: tl.Pointer, size: int) -> None:
    """Kernel: all PEs load the same elements of `y`."""
    table = tl.load_async(y, 512)
    own = tl.load(own_start(x, size), size)
    tl.store(own_start(z, size), own + tl.sum(table.wait()))


def product(x: tl.Pointer, y: tl.Pointer, z: tl.Pointer, rows: int) -> None:
    a, b = (tl.ref(each, (rows, rows)) for each in (x, y))
    tl.composite("gemm", a, b, out=tl.ref(z, (rows, rows))).wait()


def passed_on(x: tl.Pointer, y: tl.Pointer, size: int) -> None:
    """Kernel: each PE reads what the next one has stored."""
    tl.store(own_start(y, size), tl.load(own_start(x, size), size) + 1)
    tl.barrier()
    own = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    count = tl.num_programs(0) * tl.num_programs(1)
    follower = tl.load(y + (own + 1) % count * size, size)
    tl.store(own_start(x, size), follower)


def one_by_one(kernel: Callable[..., None], launches: int) -> Program:
    """A program that waits for each launch of a kernel on the same two tensors."""

    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        torch.ahbm.synchronize()
        for _ in range(launches):
            torch.launch("kernel", kernel, x, y, SIZE)
            torch.ahbm.synchronize()
        return x, y

    return program


def test_a_launch_is_repeated_from_its_third_time_on(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    done = compared(monkeypatch, one_by_one(doubled, 6), record=record).done
    assert (done.kernels, done.repeated_kernels) == (6 * PES, 4 * PES)


@pytest.mark.parametrize("data", [True, False], ids=["data", "no-data"])
def test_a_launch_of_many_records_is_repeated_without_data_only(
    monkeypatch: pytest.MonkeyPatch, *, data: bool
) -> None:
    monkeypatch.setattr(learned_launch, "MOST_OF_A_LAUNCH", 2 * PES)
    done = compared(monkeypatch, one_by_one(doubled, 6), data=data).done
    assert done.repeated_kernels == (0 if data else 4 * PES)


def test_a_launch_that_needs_more_memory_than_its_share_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch_templates, "MOST_BYTES", 4 * 8 * 56)
    done = compared(monkeypatch, one_by_one(doubled, 6), data=False).done
    assert done.repeated_kernels == 0


def test_a_launch_is_repeated_whose_tensors_lie_in_memories_that_nothing_reaches(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    def first_only(x: tl.Pointer, size: int) -> None:
        if tl.program_id(0) + tl.program_id(1) == 0:
            tl.store(x, tl.zeros(size, tl.float32))

    def program() -> Sequence[torch.Tensor]:
        x = torch.empty(PES * SIZE, dp=ROWS)
        for _ in range(8):
            torch.launch("first", first_only, x, SIZE)
            torch.ahbm.synchronize()
        return ()

    assert compared(monkeypatch, program, record=record).done.repeated_kernels >= 4 * PES


def test_a_launch_is_repeated_while_an_earlier_answer_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        for _ in range(12):
            torch.launch("doubled", doubled, x, y, SIZE)
        return x, y

    assert compared(monkeypatch, program, record=record).done.repeated_kernels >= 4 * PES


def test_answers_arrive_at_their_times_wherever_they_are_when_a_launch_begins(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(count=PES * SIZE * 30), tensor(count=PES * SIZE * 30)
        # Behind a short launch, more answers are on their way than behind a long one.
        for number in range(30):
            torch.launch("doubled", doubled, x, y, SIZE * (30 if number % 7 in (2, 5) else 1))
        return x, y

    # Two sizes at two places of the answers: the first launches with each are simulated.
    assert compared(monkeypatch, program, record=record).done.repeated_kernels == 25 * PES


def test_a_launch_depends_on_where_answers_are_when_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        for turn in range(12):
            torch.ahbm.synchronize()
            # The answer of the event passes the links while the host computes.
            torch.ahbm.Event().record()
            running_rank().device.compute("host", (20_000, 90_000, 20_001)[turn % 3])
            torch.launch("doubled", doubled, x, y, SIZE)
        return x, y

    assert compared(monkeypatch, program, record=True).done.repeated_kernels > 0


def test_a_program_that_goes_on_beside_a_launch_finds_it_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        tensors = [tensor(first=each) for each in range(3)]
        other, values = torch.ahbm.Stream(), np.ones(PES * SIZE, np.float32)
        for turn in range(6):
            torch.ahbm.synchronize()
            event = torch.ahbm.Event()
            event.record()
            torch.launch("doubled", doubled, *tensors[:2], SIZE)
            # The answer comes while the launch runs; then the copy is on its way beside it.
            event.synchronize()
            with torch.ahbm.stream(other):
                tensors[2][:] = values * turn
        other.synchronize()
        return tensors

    # The program waits for an answer that comes while the launch runs, so that none is repeated.
    assert compared(monkeypatch, program, record=True).done.repeated_kernels == 0


def test_a_launch_on_other_tensors_is_repeated_with_their_values(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    def program() -> Sequence[torch.Tensor]:
        # Of odd sizes, so that the tensors begin at many places of a round over the channels.
        tensors = [tensor(ONE, 24 + 64 * (each % 5), each) for each in range(24)]
        for x, y in pairwise(tensors):
            torch.launch("doubled", doubled, x, y, SIZE)
            torch.ahbm.synchronize()
        return tensors

    done = compared(monkeypatch, program, record=record).done
    assert done.repeated_kernels > done.kernels / 2


def test_a_launch_whose_loads_meet_at_other_channels_is_served_at_other_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        # Two channels have the elements of a load, and eight those of all tensors.
        tensors = [tensor(ONE, 128 + 64 * (each * each % 7), each) for each in range(16)]
        for x, y in product_of(tensors, tensors):
            torch.launch("added", added, x, y, tensors[0], 128)
            torch.ahbm.synchronize()
        return tensors

    done = compared(monkeypatch, program, record=True).done
    assert 0 < done.repeated_kernels < done.kernels - 8


def test_a_launch_whose_requests_reach_a_slice_at_the_times_of_its_events_is_repeated_elsewhere(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    pes, cubes = 32, variant_text(sip__cube_mesh={"w": 2, "h": 2})

    def program() -> Sequence[torch.Tensor]:
        x, z = tensor(ROWS, pes * 64), tensor(ROWS, pes * 64)
        tables = [tensor(ONE, 512 + 64 * each, each) for each in range(8)]
        for y in tables * 2:
            torch.launch("looked_up", looked_up, x, y, z, 64)
            torch.ahbm.synchronize()
        return z, *tables

    done = compared(monkeypatch, program, record=record, topology=cubes).done
    # Each table begins at another channel of the slice that all PEs read.
    assert done.repeated_kernels >= done.kernels / 2


def test_a_launch_on_one_tensor_in_place_of_two_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        torch.ahbm.synchronize()
        for turn in range(8):
            torch.launch("doubled", doubled, x, x if turn > 3 else y, SIZE)
            torch.ahbm.synchronize()
        return x, y

    # Each of both is recorded once; the first time of all is not.
    assert compared(monkeypatch, program).done.repeated_kernels == 5 * PES


@pytest.mark.parametrize("data", [True, False], ids=["data", "no-data"])
@pytest.mark.parametrize("rows", [32, 72])
def test_products_of_a_repeated_launch_take_the_slots_whose_turn_it_is(
    monkeypatch: pytest.MonkeyPatch, rows: int, *, data: bool
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y, z = (tensor(ONE, rows * rows, each) for each in range(3))
        for turn in range(7):
            torch.launch("product", product, x, y, z, rows)
            # A product of another size moves the turn on.
            if turn % 3 == 2:
                torch.launch("product", product, x, y, z, rows - 8)
            torch.ahbm.synchronize()
        return x, y, z

    assert compared(monkeypatch, program, data=data, record=True).done.repeated_kernels >= 4


def test_a_pe_reads_what_another_one_has_stored_in_a_repeated_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It reads its ids, so that it has a list on every PE only behind its second launch.
    assert (
        compared(monkeypatch, one_by_one(passed_on, 6), record=True).done.repeated_kernels
        == 3 * PES
    )


def test_a_launch_beside_a_copy_of_another_stream_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        tensors = [tensor(first=each) for each in range(3)]
        other, values = torch.ahbm.Stream(), np.ones(PES * SIZE, np.float32)
        for turn in range(8):
            torch.ahbm.synchronize()
            if turn % 2:
                with torch.ahbm.stream(other):
                    tensors[2][:] = values * turn
            torch.launch("doubled", doubled, *tensors[:2], SIZE)
        other.synchronize()
        return tensors

    # Of four that are alone, the first two are not repeated.
    assert compared(monkeypatch, program, record=True).done.repeated_kernels == 2 * PES


def test_a_program_that_polls_for_answers_sees_them_at_their_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(), tensor()
        for _ in range(6):
            for _ in range(3):
                torch.launch("doubled", doubled, x, y, SIZE)
            event = torch.ahbm.Event()
            event.record()
            while not event.query():
                pass
        return x, y

    # It waits for any answer, and one of an earlier launch comes while each launch runs.
    assert compared(monkeypatch, program, record=True).done.repeated_kernels == 0


@pytest.mark.parametrize(
    "machine",
    [{"noc__flow_control": "credits"}, {"hbm__model": "banks"}, {"impl": {"pe_dma": "pe_dma"}}],
    ids=["credits", "banks", "impl-of-the-model"],
)
def test_machines_with_other_parts_repeat_no_launch(
    monkeypatch: pytest.MonkeyPatch, machine: dict[str, Any]
) -> None:
    topology = variant_text(**MESH, **machine)
    done = compared(monkeypatch, one_by_one(doubled, 4), topology=topology).done
    assert (done.repeated_kernels > 0) == ("impl" in machine)


Function = Callable[..., tl.Value]


def unary(function: Function, x: tl.Pointer, y: tl.Pointer) -> None:
    tl.store(y, function(tl.load(x, (4, 6)) * 0.1 + 0.5))


def binary(function: Function, x: tl.Pointer, y: tl.Pointer) -> None:
    value = tl.load(x, (4, 6)) * 0.1 + 0.5
    tl.store(y, function(value, value + 1))


def comparison(function: Function, x: tl.Pointer, y: tl.Pointer) -> None:
    value = tl.load(x, (4, 6))
    tl.store(y, tl.where(function(value, 9.25), value, 0.0))


def reduction(function: Function, x: tl.Pointer, y: tl.Pointer) -> None:
    value = tl.load(x, (4, 6))
    tl.store(y, function(value, axis=0).to(tl.float32))
    tl.store(y + 6, function(value, axis=1).to(tl.float32))


def scan(function: Function, x: tl.Pointer, y: tl.Pointer) -> None:
    tl.store(y, function(tl.load(x, (4, 6)), axis=1))


def others(_: Function, x: tl.Pointer, y: tl.Pointer) -> None:
    value = tl.load(x, (4, 6))
    half = value.to(tl.bfloat16) * 0.5 + tl.full((4, 6), 3, tl.bfloat16)
    tl.store(y, tl.softmax(half.to(tl.float32), axis=1))
    tl.store(y, tl.cat([value.mT[:3], value[:, 3:].mT]).reshape(4, 6))
    tl.store(y, tl.fma(value, value, value) + tl.arange(0, 6).to(tl.float32))
    tl.store(y, tl.clamp(tl.maximum(value, 3.0), 0.0, 9.0))


def functions(*names: str) -> list[Function]:
    return [getattr(tl, name) for name in names if hasattr(tl, name)]


OPERATIONS = [
    *((unary, each) for each in functions(*[n for n, e in ELEMENTWISE.items() if e.operands == 1])),
    *((binary, each) for each in functions("add", "sub", "mul", "div", "pow")),
    *((binary, each) for each in functions("maximum", "minimum")),
    *((comparison, each) for each in functions(*COMPARISONS)),
    *((reduction, each) for each in functions(*REDUCTIONS)),
    *((scan, each) for each in functions(*SCANS)),
    (others, tl.abs),
]


def test_every_operation_of_the_vector_engine_is_repeated_with_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program() -> Sequence[torch.Tensor]:
        x, y = tensor(ONE, 24, 0.25), tensor(ONE, 64)
        torch.ahbm.synchronize()
        for kernel, function in OPERATIONS:
            for _ in range(3):
                torch.launch("kernel", kernel, function, x, y)
                torch.ahbm.synchronize()
        return x, y

    assert len(OPERATIONS) > 20
    done = compared(monkeypatch, program).done
    assert done.repeated_kernels == len(OPERATIONS)
