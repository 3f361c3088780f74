"""Kernels that exchange values in the mock runtime: rings with slots, every kind of receive, and
deadlocks.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from kernbench import tl
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import IpcqDeadlock, KernelError, PageFaultError
from runtime.language.mock import MockPe, connect, run
from runtime.language.value import Value

I32 = tl.int32
RING = {"n_slots": 2, "slot_bytes": 16}


def row(count: int) -> list[MockPe]:
    """PEs of neighbouring cubes from W to E, with rings of two slots of four i32."""
    pes = [
        MockPe(PeCoordinates(0, cube, 0), (1, count), kernel=f"k{cube}") for cube in range(count)
    ]
    for left, right in pairwise(pes):
        connect(left, "E", right, **RING)
    return pes


def numbers(*elements: int) -> Value:
    array = np.array(elements, np.int32)
    return Value(array.shape, I32, array)


def elements(value: Value | None) -> list[int]:
    assert value is not None
    assert value.data is not None
    return value.data.tolist()


def exchange(*kernels: Callable[[], object]) -> None:
    run(list(zip(row(len(kernels)), kernels, strict=True)))


def test_values_arrive_in_the_order_in_which_they_were_sent() -> None:
    seen: list[list[int]] = []

    def send() -> None:
        for number in range(5):
            tl.send("E", numbers(number, -number))

    exchange(send, lambda: seen.extend(elements(tl.recv("W", 2, I32)) for _ in range(5)))
    assert seen == [[number, -number] for number in range(5)]


def test_a_value_larger_than_the_ring_goes_slot_by_slot() -> None:
    seen: list[list[int]] = []
    exchange(
        lambda: tl.send("E", numbers(*range(30))),
        lambda: seen.append(elements(tl.recv("W", 30, I32))),
    )
    assert seen == [list(range(30))]


def test_a_value_of_no_elements_takes_no_slot() -> None:
    shapes: list[tuple[int, ...]] = []

    def receive() -> None:
        shapes.extend(tl.recv(direction, (0, 2), I32).shape for direction in ("W", None))

    exchange(lambda: tl.send("E", numbers()), receive)
    assert shapes == [(0, 2), (0, 2)]


def test_any_direction_serves_full_rings_in_turn() -> None:
    pes, seen = row(3), list[int]()

    def middle() -> None:
        for _ in range(4):
            seen.extend(elements(tl.recv(None, 1, I32)))

    def side(toward: str, first: int) -> None:
        tl.send(toward, numbers(first))
        tl.send(toward, numbers(first + 1))

    # The sides run first, so that both rings are full when the receiver starts.
    run([(pes[0], lambda: side("E", 10)), (pes[2], lambda: side("W", 20)), (pes[1], middle)])
    assert seen == [20, 10, 21, 11]


def test_a_receive_over_a_value_changes_it_and_its_views() -> None:
    seen: list[list[int]] = []

    def receive() -> None:
        buffer = tl.zeros((2, 3), I32)
        lower = buffer[1:]
        assert tl.recv("W", dst_addr=lower) is lower
        assert tl.recv("W", (1, 3), I32, dst_addr=buffer[:1], dst_space="tcm").shape == (1, 3)
        seen.append(elements(buffer))

    exchange(lambda: (tl.send("E", numbers(1, 2, 3)), tl.send("E", numbers(4, 5, 6))), receive)
    assert seen == [[[4, 5, 6], [1, 2, 3]]]


def test_a_receive_to_memory_takes_no_scratch_and_returns_nothing() -> None:
    pes, memory = row(2), np.zeros(6, np.int32)
    at = pes[1].memory.map(memory, "x")

    def receive() -> None:
        tl.zeros((1 << 18) - 1, I32)
        assert tl.recv("W", 3, dst_addr=at + 1, dst_space="hbm") is None

    run([(pes[0], lambda: tl.send("E", numbers(7, 8, 9))), (pes[1], receive)])
    assert memory.tolist() == [0, 7, 8, 9, 0, 0]


def test_asynchronous_receives_of_one_direction_get_values_in_the_order_of_posting() -> None:
    pes, seen = row(2), list[list[int]]()

    def receive() -> None:
        pending = [tl.recv_async("W", size, I32) for size in (1, 2, 3)]
        seen.extend(elements(tl.wait(each)) for each in reversed(pending))

    # The receiver runs first and posts all receives before the first send; the ring has two slots.
    run(
        [
            (pes[1], receive),
            (pes[0], lambda: [tl.send("E", numbers(*range(size))) for size in (1, 2, 3)]),
        ]
    )
    assert seen == [[0, 1, 2], [0, 1], [0]]


def test_an_asynchronous_receive_frees_slots_while_its_kernel_waits_elsewhere() -> None:
    seen: list[list[int]] = []

    def both(direction: str) -> None:
        pending = tl.recv_async(direction, 20, I32)
        tl.send(direction, numbers(*range(20)))
        seen.append(elements(tl.wait(pending)))

    # 80 bytes do not fit two slots of 16: without the asynchronous receive both sends would wait
    # forever.
    exchange(lambda: both("E"), lambda: both("W"))
    assert seen == [list(range(20))] * 2


def test_a_kernel_ends_after_the_receives_that_it_did_not_wait_for() -> None:
    pes, memory = row(2), np.zeros(20, np.int32)
    at = pes[1].memory.map(memory, "x")
    run(
        [
            (pes[1], lambda: tl.recv_async("W", 20, dst_addr=at)),
            (pes[0], lambda: tl.send("E", numbers(*range(20)))),
        ]
    )
    assert memory.tolist() == list(range(20))
    with pytest.raises(IpcqDeadlock, match=r"recv W \(sip 0 cube 0 pe 0\)"):
        exchange(lambda: None, lambda: tl.recv_async("W", 1, I32))


def test_a_view_with_gaps_is_sent_and_received_in_one_slot_only() -> None:
    seen: list[list[int]] = []

    def receive(rows: int) -> None:
        buffer = tl.zeros((rows, 3), I32)
        tl.recv("W", dst_addr=buffer[:, 1:])
        seen.append(elements(buffer))

    exchange(lambda: tl.send("E", numbers(1, 2, 3, 4)), lambda: receive(2))
    assert seen == [[[0, 1, 2], [0, 3, 4]]]
    with pytest.raises(
        KernelError,
        match="recv from W over a view with gaps, 24 bytes: it must fit a slot of 16 bytes",
    ):
        exchange(lambda: tl.send("E", numbers(1, 2, 3, 4, 5, 6)), lambda: receive(3))
    with pytest.raises(
        KernelError,
        match=r"send to E of a view with gaps, 24 bytes: .* a copy made with tl\.cat has no gaps",
    ):
        exchange(lambda: tl.send("E", tl.zeros((3, 3), I32)[:, 1:]), lambda: None)


def test_a_full_ring_that_no_kernel_empties_is_a_deadlock() -> None:
    def both(direction: str) -> None:
        tl.send(direction, numbers(*range(20)))
        tl.recv(direction, 20, I32)

    with pytest.raises(IpcqDeadlock) as raised:
        exchange(lambda: both("E"), lambda: both("W"))
    assert raised.value.pes == (
        "sip 0 cube 0 pe 0: kernel 'k0' send E (sip 0 cube 1 pe 0)",
        "sip 0 cube 1 pe 0: kernel 'k1' send W (sip 0 cube 0 pe 0)",
    )


def test_a_receive_that_no_kernel_sends_to_is_a_deadlock() -> None:
    with pytest.raises(IpcqDeadlock) as raised:
        exchange(lambda: tl.recv("E", 4, I32), lambda: tl.recv(None, 4, I32), lambda: None)
    assert raised.value.pes == (
        "sip 0 cube 0 pe 0: kernel 'k0' recv E (sip 0 cube 1 pe 0)",
        "sip 0 cube 1 pe 0: kernel 'k1' recv any (any peer)",
    )


@pytest.mark.parametrize(
    ("shape", "dtype", "problem"),
    [
        (3, I32, "expects 12 bytes of i32 in this slot, 8 bytes of i32 came"),
        (1, I32, "expects 4 bytes of i32 in this slot, 8 bytes of i32 came"),
        (2, tl.float32, "expects 8 bytes of f32 in this slot, 8 bytes of i32 came"),
    ],
)
def test_a_receive_of_something_else_names_both_sides(
    shape: int, dtype: tl.DType, problem: str
) -> None:
    with pytest.raises(KernelError) as raised:
        exchange(lambda: tl.send("E", numbers(1, 2)), lambda: tl.recv("W", shape, dtype))
    assert raised.value.problem == f"recv from W {problem} from sip 0 cube 0 pe 0"
    assert (raised.value.kernel, raised.value.coordinates) == ("k1", (0, 1, 0))


def test_the_error_of_a_wrong_direction_has_the_directions_that_exist() -> None:
    with pytest.raises(KernelError, match=r"no queue in direction 'N' is installed here; known: E"):
        exchange(lambda: tl.send("N", numbers(1)), lambda: None)
    with pytest.raises(
        ValueError, match=r"direction 'global_EE' does not exist; did you mean 'global_E'\?"
    ):
        connect(MockPe(), "global_EE", MockPe(), **RING)


def test_a_destination_outside_every_array_is_a_page_fault_of_the_receive() -> None:
    pes = row(2)
    at = pes[1].memory.map(np.zeros(4, np.int32), "x")
    with pytest.raises(PageFaultError, match="array x"):
        run(
            [
                (pes[0], lambda: tl.send("E", numbers(1, 2))),
                (pes[1], lambda: tl.recv("W", 2, dst_addr=at + 3)),
            ]
        )


def test_two_queues_may_connect_the_same_two_pes() -> None:
    first, second, seen = (
        MockPe(PeCoordinates(0, 0, 0)),
        MockPe(PeCoordinates(1, 0, 0)),
        list[int](),
    )
    connect(first, "global_E", second, **RING)
    connect(first, "global_W", second, **RING)

    def ring(number: int) -> None:
        tl.send("global_E", numbers(number))
        seen.extend(elements(tl.recv("global_W", 1, I32)))

    run([(first, lambda: ring(1)), (second, lambda: ring(2))])
    assert sorted(seen) == [1, 2]
