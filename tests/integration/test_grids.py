"""Launches with a grid: programs on their PEs, one after the other, on the chip and in the mock."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, mock, tl, torch
from runtime.core.device import Handle
from runtime.core.errors import KernelError, PageFaultError
from runtime.language.value import Pointer
from tests.support.topologies import variant_text
from tests.support.world import simulate

CHIP: dict[str, Any] = {
    "sip__cube_mesh": {"w": 2, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}
"""Two cubes with two PEs."""
EVERYWHERE = DPPolicy(cube="row_wise", pe="row_wise")
BLOCK = 4


def launched(
    kernel: Callable[..., object],
    grid: tuple[int, ...],
    size: int = 0,
    data: bool = True,
    **changes: Any,
) -> tuple[np.ndarray, Handle]:
    """A vector of zeros after the programs of `kernel(pointer)`, and the handle of the launch."""

    def program(_rank: int) -> tuple[np.ndarray, Handle]:
        length = size or int(np.prod(grid)) * BLOCK
        # A shard for every PE.
        x = torch.zeros(-(-length // 4) * 4, dtype=torch.int32, dp=EVERYWHERE)
        handle = torch.launch("k", kernel, x, grid=grid)
        return x.numpy()[:length], handle

    topology = variant_text(**CHIP, **changes)
    return simulate(program, 1, topology=topology, data=data).returned[0]


def number() -> int:
    """The number of a program, from its ids and the lengths of the axes."""
    outer = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    return outer * tl.num_programs(0) + tl.program_id(0)


def fill(x: Pointer) -> None:
    with tl.scratch():
        tl.store(x + number() * BLOCK, tl.full((BLOCK,), number(), tl.int32))


@pytest.mark.parametrize("grid", [(1,), (3,), (11,), (2, 3), (2, 1, 5)])
def test_every_program_runs_once_with_its_ids(grid: tuple[int, ...]) -> None:
    expected = np.repeat(np.arange(np.prod(grid)), BLOCK).astype(np.int32)
    found, _ = launched(fill, grid)
    np.testing.assert_array_equal(found, expected)
    mocked = np.zeros_like(expected)
    mock.launch(fill, mocked, cubes=2, pes=2, grid=grid)
    np.testing.assert_array_equal(mocked, expected)


@pytest.mark.parametrize(("programs", "rounds"), [(1, 1), (4, 1), (5, 2), (13, 4)])
def test_a_pe_takes_the_time_of_its_programs_one_after_the_other(
    programs: int, rounds: int
) -> None:
    def wait(x: Pointer) -> None:
        tl.zeros((64,), tl.float32)

    def exec_ps(programs: int, program_ns: float) -> int:
        return launched(wait, (programs,), data=False, pe__cpu__program_ns=program_ns)[1].pe_exec_ps

    alone_ps = exec_ps(1, 0.0)
    assert exec_ps(programs, 7.0) == rounds * (alone_ps + 7_000)


def test_the_scratch_of_a_program_is_free_for_the_next_one() -> None:
    def most_of_it(x: Pointer) -> None:
        tl.store(x + number() * BLOCK, tl.full((200_000,), 7, tl.int32)[:BLOCK])

    assert (launched(most_of_it, (9,))[0] == 7).all()
    mocked = np.zeros(36, np.int32)
    mock.launch(most_of_it, mocked, grid=(9,))
    assert (mocked == 7).all()


def error_of(
    kernel: Callable[..., object], error: type[Exception], grid: tuple[int, ...] = (2, 3)
) -> str:
    """The message of the chip, which is that of the mock runtime as well."""
    with pytest.raises(error) as on_chip:
        launched(kernel, grid)
    with pytest.raises(error) as mocked:
        mock.launch(kernel, np.zeros(24, np.int32), cubes=2, pes=2, grid=grid)
    name = repr(kernel.__name__)
    assert str(mocked.value).replace(name, "'k'")[:60] == str(on_chip.value)[:60]
    return str(on_chip.value)


def test_the_errors_of_a_kernel_name_its_program() -> None:
    def kernel(x: Pointer) -> None:
        if number() == 2:
            tl.load(x, (2,), strides=(-1,))

    # Program (0, 1) is number 2: the first PE of the second cube.
    assert "kernel 'k' program (0, 1) on sip 0 cube 1 pe 0 at " in error_of(kernel, KernelError)


def test_a_page_fault_names_the_program() -> None:
    def kernel(x: Pointer) -> None:
        tl.load(x + (1_000_000 if number() == 2 else 0), 4)

    text = error_of(kernel, PageFaultError)
    assert text.startswith("page fault in kernel 'k' program (0, 1) on sip 0 cube 1 pe 0 at ")


def test_an_axis_that_no_grid_has_is_refused() -> None:
    def kernel(x: Pointer) -> None:
        tl.program_id(3)

    assert error_of(kernel, KernelError, (1,)).endswith("axis 3: a grid has axes 0, 1 and 2")


MESSAGES: dict[str, Callable[[Pointer], object]] = {
    "no queue in direction 'E'": lambda x: tl.send("E", tl.zeros(4, tl.int32)),
    "no queue in direction 'W'": lambda x: tl.recv("W", 4, tl.int32),
    "recv from any direction": lambda x: tl.recv(None, 4, tl.int32),
}


@pytest.mark.parametrize("problem", MESSAGES)
def test_programs_exchange_no_messages(problem: str) -> None:
    text = error_of(MESSAGES[problem], KernelError, (1,))
    assert f": {problem}: a launch with grid= has neither queues nor" in text


def test_two_programs_do_not_store_to_the_same_elements_even_on_one_pe() -> None:
    def kernel(x: Pointer) -> None:
        # Programs 0 and 4 run on the first PE.
        tl.store(x + number() % 4, tl.zeros(1, tl.int32))

    with pytest.raises(KernelError) as raised:
        launched(kernel, (5,), size=8)
    assert raised.value.program == (4,)
    assert raised.value.problem.endswith(
        "[8], and so does program (0,) on sip 0 cube 0 pe 0 in the same launch; store other "
        "elements in each program (tl.program_id)"
    )


def test_an_exception_of_a_program_has_a_note_with_its_ids() -> None:
    def kernel(x: Pointer) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        launched(kernel, (1,))
    note = raised.value.__notes__[0]
    assert note.startswith("in kernel 'k' program (0,) on sip 0 cube 0 pe 0, launched at ")


def test_a_grid_with_queues_is_refused_on_the_host() -> None:
    def program(_rank: int) -> None:
        torch.launch("k", fill, torch.zeros(4), queues="pe_ring", grid=(2,))

    with pytest.raises(ValueError, match=r"launch of 'k' with grid \(2,\) and queues: a launch"):
        simulate(program, 1, topology=variant_text(**CHIP))
    with pytest.raises(ValueError, match=r"grid \(2,\) and queues: a launch with grid="):
        mock.launch(fill, np.zeros(8, np.int32), queues={}, grid=(2,))
