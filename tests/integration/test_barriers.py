"""Barriers of a launch: what they order, and how a run ends in which a PE does not come."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, mock, tl, torch
from runtime.core.errors import IpcqDeadlock, KernelError
from runtime.language.value import Pointer
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 2},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Four cubes with two PEs."""
PES = 8
ZEROS = np.zeros(PES, np.int32)
EVERYWHERE = DPPolicy(cube="row_wise", pe="row_wise")


def own_pe() -> int:
    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)


def late(rounds: int) -> None:
    """Work that takes a time of its own on each PE."""
    for _ in range(rounds):
        tl.zeros((256,), tl.float32)


def launched(kernel: Callable[..., object], **options: Any) -> Any:
    def program(_rank: int) -> np.ndarray:
        x = torch.zeros(PES, dtype=torch.int32, dp=EVERYWHERE)
        torch.launch("k", kernel, x, **options)
        return x.numpy()

    return simulate(program, 1, topology=TOPOLOGY)


def shifted(x: Pointer) -> None:
    """Each PE stores to the element of its neighbour, and adds to what it finds in its own."""
    pe = own_pe()
    late(5 * pe % 7)
    tl.store(x + (pe + 1) % PES, tl.full(1, pe, tl.int32))
    tl.barrier()
    found = tl.load(x + pe, 1)
    tl.barrier()
    late(3 * pe % 5)
    tl.store(x + pe, found * 10 + 1)
    tl.barrier()


def test_what_was_stored_before_a_barrier_is_loaded_and_stored_over_behind_it() -> None:
    expected = np.roll(np.arange(PES), 1).astype(np.int32) * 10 + 1
    np.testing.assert_array_equal(launched(shifted).returned[0], expected)
    mocked = np.zeros(PES, np.int32)
    mock.launch(shifted, mocked, cubes=4, pes=2)
    np.testing.assert_array_equal(mocked, expected)


def test_no_pe_leaves_a_barrier_before_the_last_one_has_come() -> None:
    def kernel(x: Pointer) -> None:
        late(7 * own_pe() % 5)
        tl.device_print("comes")
        tl.barrier()
        tl.device_print("goes")

    lines = launched(kernel).prints
    assert [line.text for line in lines] == ["comes"] * PES + ["goes"] * PES


def test_a_barrier_of_a_cube_waits_for_no_pe_of_another_cube() -> None:
    def kernel(x: Pointer) -> None:
        cube, pe = tl.program_id(1), own_pe()
        late(20 * cube + 7 * pe % 5)
        tl.device_print("comes", cube)
        tl.barrier("cube")
        tl.device_print("goes", cube)

    lines = [line.text for line in launched(kernel).prints]
    expected = [
        f"{word}: {cube}" for cube in range(4) for word in ("comes", "comes", "goes", "goes")
    ]
    assert lines == expected


def test_what_was_stored_before_a_barrier_of_a_cube_is_loaded_behind_it() -> None:
    def swapped(x: Pointer) -> None:
        pe = own_pe()
        late(5 * pe % 7)
        tl.store(x + pe, tl.full(1, pe, tl.int32))
        for _ in range(3):
            tl.barrier("cube")
            found = tl.load(x + (pe ^ 1), 1)
            tl.barrier("cube")
            tl.store(x + pe, found + 1)

    expected = np.arange(PES, dtype=np.int32)
    for _ in range(3):
        expected = expected.reshape(-1, 2)[:, ::-1].reshape(-1) + 1
    np.testing.assert_array_equal(launched(swapped).returned[0], expected)
    mocked = np.zeros(PES, np.int32)
    mock.launch(swapped, mocked, cubes=4, pes=2)
    np.testing.assert_array_equal(mocked, expected)


@pytest.mark.parametrize("in_its_cube", [True, False])
def test_a_barrier_of_a_cube_orders_stores_to_one_element_by_pes_of_that_cube_alone(
    *, in_its_cube: bool
) -> None:
    def twice(x: Pointer) -> None:
        cube = tl.program_id(1)
        for pe in range(2):
            # In turn: each PE of a cube, or PE 0 of cube 0 and PE 1 of cube 1.
            if tl.program_id(0) == pe and (in_its_cube or pe == cube):
                tl.store(x + cube * in_its_cube, tl.full(1, pe + 5, tl.int32))
            tl.barrier("cube")

    if in_its_cube:
        assert launched(twice).returned[0][:4].tolist() == [6, 6, 6, 6]
        return
    with pytest.raises(KernelError, match="and so does sip 0 cube 0 pe 0 in the same launch"):
        launched(twice)


def test_another_scope_of_a_barrier_is_refused() -> None:
    def kernel(x: Pointer) -> None:
        tl.barrier("sip")  # pyright: ignore[reportArgumentType] - what is refused

    with pytest.raises(KernelError, match="the scope is 'launch' or 'cube', not 'sip'"):
        launched(kernel)


def test_two_launches_side_by_side_have_barriers_of_their_own() -> None:
    def kernel(x: Pointer, rounds: int) -> None:
        for _ in range(3):
            late(rounds)
            tl.barrier()

    def program(_rank: int) -> list[int]:
        times: list[int] = []
        for together in (False, True):
            placed = [torch.zeros(2, dp=DPPolicy(num_cubes=1, num_pes=1)) for _ in range(2)]
            other = torch.ahbm.Stream()
            first = torch.launch("a", kernel, placed[0], 1)
            if not together:
                torch.ahbm.synchronize()
            with torch.ahbm.stream(other):
                torch.launch("b", kernel, placed[1], 9)
            torch.ahbm.synchronize()
            times.append(first.pe_exec_ps)
        return times

    alone_ps, beside_ps = simulate(program, 1, topology=TOPOLOGY).returned[0]
    assert beside_ps == alone_ps


def test_the_diagnosis_names_the_pes_that_wait_and_those_that_ended_without_the_barrier() -> None:
    def kernel(x: Pointer) -> None:
        if own_pe() not in (2, 5):
            tl.barrier()

    with pytest.raises(IpcqDeadlock) as on_chip:
        launched(kernel)
    text = "barrier without cube 1 pe 0 (ended without it), cube 2 pe 1 (ended without it)"
    assert on_chip.value.waits == (f"chain: sip 0 cube 0 pe 0 {text}; the same on 5 other PEs",)
    assert len(on_chip.value.pes) == 6
    line = kernel.__code__.co_firstlineno + 2
    assert on_chip.value.pes[0].startswith(f"sip 0 cube 0 pe 0: kernel 'k' {text} since ")
    assert on_chip.value.pes[0].endswith(f"test_barriers.py:{line}")
    with pytest.raises(IpcqDeadlock) as mocked:
        mock.launch(kernel, np.zeros(8, np.int32), cubes=4, pes=2)
    assert mocked.value.pes[0] == (
        "sip 0 cube 0 pe 0: kernel 'kernel' barrier, without sip 0 cube 1 pe 0, sip 0 cube 2 pe 1"
    )


def test_a_pe_that_waits_for_a_message_instead_is_in_the_chain() -> None:
    def kernel(x: Pointer) -> None:
        if own_pe() == 3:
            tl.recv("W", 4, tl.int32)
        tl.barrier()

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        x = torch.zeros(PES, dp=EVERYWHERE)
        torch.launch("k", kernel, x, queues="pe_ring")
        torch.ahbm.synchronize()

    with pytest.raises(IpcqDeadlock) as raised:
        simulate(program, 1, topology=TOPOLOGY)
    assert any(
        "barrier without cube 1 pe 1 -> sip 0 cube 1 pe 1 recv W" in line
        for line in raised.value.waits
    )


def refused(kernel: Callable[..., object], place: str, **options: Any) -> str:
    """The problem of the `KernelError` of a launch on the chip or in the mock runtime."""
    run = partial(launched, kernel) if place == "chip" else partial(mock.launch, kernel, ZEROS)
    with pytest.raises(KernelError) as raised:
        run(**options)
    return raised.value.problem


@pytest.mark.parametrize("place", ["chip", "mock"])
def test_an_operation_in_flight_that_writes_to_memory_is_refused(place: str) -> None:
    def kernel(x: Pointer) -> None:
        tl.store_async(x + own_pe(), tl.zeros(1, tl.int32))
        tl.barrier()

    problem = refused(kernel, place)
    assert problem.startswith("tl.barrier: the tl.store_async at ")
    assert problem.endswith(
        " is in flight, and other PEs may use behind the barrier what it writes: tl.wait for it "
        "before"
    )


@pytest.mark.parametrize("place", ["chip", "mock"])
def test_programs_of_a_grid_have_no_barrier(place: str) -> None:
    def kernel(x: Pointer) -> None:
        tl.barrier()

    problem = refused(kernel, place, grid=(2,))
    assert problem.startswith("tl.barrier: a launch with grid= has neither queues nor")
