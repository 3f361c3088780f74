"""Kernels from command lists: which have one, when it is used, and how their errors read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.errors import UsageError
from runtime.wire.control import Done
from runtime.wire.environment import FAST_FORWARD, FOLD, fast_forward_requested, fold_requested
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
PES, SIZE = 4, 8
ROWS, EVERYWHERE = DPPolicy(cube="row_wise", pe="row_wise"), DPPolicy()
SEEN = list[int]()


def own_pe() -> int:
    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)


def doubled(x: tl.Pointer, size: int) -> None:
    start = x + own_pe() * size
    tl.store(start, tl.load(start, size) * 2)


def of_replicas(x: tl.Pointer, size: int) -> None:
    tl.store(x, tl.load(x, size) * 2)


def noted(x: tl.Pointer, size: int) -> None:
    SEEN.append(own_pe())
    doubled(x, size)


def asserted(x: tl.Pointer, size: int) -> None:
    tl.device_assert(tl.load(x + own_pe() * size, 1) < 1e6)
    doubled(x, size)


def run(
    kernel: Callable[..., None],
    launches: int,
    *,
    placement: DPPolicy = ROWS,
    sizes: tuple[Any, ...] = (SIZE,),
    **options: Any,
) -> Simulation:
    """The launches of a kernel on all PEs, on two tensors in turn."""

    def program(_: int) -> list[np.ndarray]:
        count = PES * SIZE if placement is ROWS else SIZE
        values = np.arange(count, dtype=np.float32)
        tensors = [torch.from_numpy(values + each, dp=placement) for each in range(2)]
        for number in range(launches):
            size = sizes[number % len(sizes)]
            torch.launch("kernel", kernel, tensors[number % 2], size, **options)
        return [each.numpy() for each in tensors]

    return simulate(program, 1, topology=TOPOLOGY)


def without_function(done: Done) -> int:
    """The kernels that ran from a list, and those of launches that were repeated."""
    return done.listed_kernels + done.repeated_kernels


def test_a_kernel_with_equal_arguments_runs_from_a_list_from_the_second_pe_on() -> None:
    done = run(of_replicas, 3, placement=EVERYWHERE).done
    # The function runs on the first PE; another tensor is another address, and no other kernel.
    assert (done.kernels, without_function(done)) == (3 * PES, 3 * PES - 1)


def test_a_kernel_that_moves_pointers_by_its_ids_has_one_list_for_all_of_them() -> None:
    done = run(doubled, 4).done
    assert (done.kernels, without_function(done)) == (4 * PES, 4 * PES - 1)


def branching(x: tl.Pointer, size: int) -> None:
    start = x + own_pe() * size
    tl.store(start, tl.load(start, size) * (2 if own_pe() else 3))


def test_a_kernel_that_reads_its_ids_has_a_list_for_each_of_them() -> None:
    world = run(branching, 4)
    # Of the first launch, the second PE sees that the list is one for its ids. The others run the
    # function in the first launch, and the first PE, which had no ids then, in the second.
    assert (world.done.kernels, without_function(world.done)) == (4 * PES, 4 * PES - 4)
    values = np.arange(PES * SIZE, dtype=np.float32) * 4
    values[:SIZE] *= 9 / 4
    np.testing.assert_array_equal(world.returned[0][0], values)


def test_the_programs_of_a_grid_have_lists() -> None:
    done = run(by_program, 4, grid=(3, 2)).done
    assert done.listed_kernels > 0


def by_program(x: tl.Pointer, size: int) -> None:
    start = x + (tl.program_id(1) * 3 + tl.program_id(0)) * (size // 2)
    tl.store(start, tl.load(start, size // 2) * 2)


@pytest.mark.parametrize("kernel", [noted, asserted])
def test_a_kernel_that_does_more_than_its_commands_runs_its_function(
    kernel: Callable[..., None],
) -> None:
    SEEN.clear()
    world = run(kernel, 4)
    assert world.done.listed_kernels == 0
    assert len(SEEN) == (4 * PES if kernel is noted else 0)
    np.testing.assert_array_equal(world.returned[0][0], 4 * np.arange(PES * SIZE, dtype=np.float32))


def test_another_argument_is_another_list() -> None:
    world = run(doubled, 8, sizes=(SIZE, SIZE, SIZE // 2, SIZE // 2))
    values = np.arange(PES * SIZE, dtype=np.float32)
    values[: PES * SIZE // 2] *= 4
    np.testing.assert_array_equal(world.returned[0][0], values * 4)
    assert 0 < world.done.listed_kernels < world.done.kernels - 1


def as_number(x: tl.Pointer, size: int) -> None:
    start = x + own_pe() * size
    tl.store(start, tl.full(size, own_pe(), tl.float32))


def test_an_id_that_is_a_number_for_the_engine_is_that_of_the_program() -> None:
    world = run(as_number, 3)
    np.testing.assert_array_equal(world.returned[0][0], np.repeat(np.arange(PES), SIZE))
    assert world.done.listed_kernels > 0


SCALE = 2.0


def scaled(x: tl.Pointer, size: int) -> None:
    start = x + own_pe() * size
    tl.store(start, tl.load(start, size) * SCALE)


def test_a_global_number_that_changes_between_launches_is_that_of_the_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program(_: int) -> np.ndarray:
        x = torch.from_numpy(np.ones(PES * SIZE, np.float32), dp=ROWS)
        for scale in (2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 0.5):
            monkeypatch.setitem(globals(), "SCALE", scale)
            torch.launch("scaled", scaled, x, SIZE)
            torch.ahbm.synchronize()
        return x.numpy()

    world = simulate(program, 1, topology=TOPOLOGY)
    assert world.done.listed_kernels > 0
    np.testing.assert_array_equal(world.returned[0], np.full(PES * SIZE, 8 * 27 * 0.5))


def far(x: tl.Pointer, size: int, step: int) -> None:
    tl.load(x + own_pe() * size, size)
    tl.load(x + own_pe() * step, size)


def same_elements(x: tl.Pointer, y: tl.Pointer, size: int) -> None:
    tl.store(y, tl.load(x, size))


def in_flight(x: tl.Pointer, y: tl.Pointer, size: int) -> None:
    value = tl.load(x, size)
    pending = tl.store_async(x, value)
    tl.store(y, value)
    pending.wait()


def _far(tensors: list[Any], _: int) -> object:
    return torch.launch("far", far, tensors[0], SIZE, SIZE)


def _too_far(tensors: list[Any], number: int) -> object:
    # From the fourth launch on, beyond the end: of another tensor, with the list of the others.
    return torch.launch("far", far, tensors[0 if number < 3 else 1], SIZE, SIZE)


def _conflict(tensors: list[Any], number: int) -> object:
    return torch.launch("same", same_elements, tensors[2], tensors[2 if number < 3 else 0], SIZE)


def _overlap(tensors: list[Any], number: int) -> object:
    target = tensors[3 if number < 3 else 2]
    return torch.launch("in flight", in_flight, tensors[2], target, SIZE)


@pytest.mark.parametrize("launch", [_too_far, _conflict, _overlap])
def test_an_error_of_a_command_reads_as_that_of_the_function(
    launch: Callable[[list[Any], int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(_: int) -> None:
        tensors = [
            torch.from_numpy(np.zeros(PES * SIZE, np.float32), dp=ROWS),
            torch.from_numpy(np.zeros(PES * (SIZE - 1), np.float32), dp=ROWS),
            *(torch.from_numpy(np.zeros(SIZE, np.float32), dp=EVERYWHERE) for _ in range(2)),
        ]
        for number in range(5):
            launch(tensors, number)
        torch.ahbm.synchronize()

    errors = list[tuple[object, ...]]()
    for fold in ("0", "1"):
        monkeypatch.setenv(FOLD, fold)
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the errors are compared
            simulate(program, 1, topology=TOPOLOGY)
        error = raised.value
        errors.append((type(error), str(error), getattr(error, "__notes__", [])))
    assert errors[0] == errors[1]
    assert "test_command_lists.py:" in str(errors[0][1])


def test_zero_folds_nothing_and_another_value_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLD, "0")
    assert run(of_replicas, 3, placement=EVERYWHERE).done.listed_kernels == 0
    monkeypatch.setenv(FAST_FORWARD, "1")
    assert not fast_forward_requested()
    monkeypatch.setenv(FOLD, "yes")
    with pytest.raises(UsageError, match="KERNBENCH_FOLD is 'yes': 0 runs the function"):
        fold_requested()


def counted(x: tl.Pointer, size: int) -> None:
    """Kernel: the number of programs on each axis, without the ids of its own."""
    tl.store(x, tl.full(size, 10 * tl.num_programs(0) + tl.num_programs(1), tl.float32))


def test_the_numbers_of_programs_are_those_of_the_launch() -> None:
    def program(_: int) -> list[float]:
        values, counts = np.zeros(SIZE, np.float32), list[float]()
        placements = DPPolicy(num_cubes=1), DPPolicy(num_pes=1), DPPolicy(num_cubes=1, num_pes=1)
        for placement in (*placements, *placements):
            x = torch.from_numpy(values, dp=placement)
            torch.launch("counted", counted, x, SIZE)
            counts.append(float(x.numpy()[0]))
        x = torch.from_numpy(values, dp=placements[-1])
        for grid in ((1, 1), (1,), (1, 1), (1,)):
            torch.launch("counted", counted, x, SIZE, grid=grid)
            counts.append(float(x.numpy()[0]))
        return counts

    world = simulate(program, 1, topology=TOPOLOGY)
    assert world.returned[0] == [21, 12, 11, 21, 12, 11, 11, 11, 11, 11]
    assert world.done.listed_kernels > 0


def lengths(x: tl.Pointer, size: int) -> None:
    """Kernel: the lengths of the grid, by a program that has no other to compare with."""
    start = x + tl.program_id(0) * size
    tl.store(start, tl.full(size, tl.num_programs(0), tl.float32))


def test_the_lengths_of_a_grid_are_those_of_the_launch() -> None:
    def program(_: int) -> list[float]:
        x, counts = torch.from_numpy(np.zeros(PES * SIZE, np.float32), dp=ROWS), list[float]()
        for length in (2, 2, 2, 3, 3, 3, 4):
            torch.launch("lengths", lengths, x, SIZE, grid=(length,))
            counts.append(float(x.numpy()[0]))
        return counts

    world = simulate(program, 1, topology=TOPOLOGY)
    assert world.returned[0] == [2, 2, 2, 3, 3, 3, 4]
    assert world.done.listed_kernels > 0
