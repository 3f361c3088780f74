"""The partition of the elements of an operator, which tensors that lie alike share."""

from collections.abc import Callable, Sequence
from typing import Any

from runtime import DPPolicy, torch
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.partition import own_parts, partition
from runtime.device.launches.strided_window import StridedWindow
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Two cubes with two PEs."""
ROWS = DPPolicy(cube="row_wise", pe="row_wise")


def on_a_rank(program: Callable[[], Any]) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY).returned[0]


def tensors(count: int, *shape: int) -> list[StridedWindow]:
    return [StridedWindow.of(torch.zeros(shape, dtype=torch.int32, dp=ROWS)) for _ in range(count)]


def test_tensors_that_differ_in_their_addresses_alone_share_a_partition() -> None:
    def program() -> list[bool]:
        first, second, third = tensors(3, 8, 6)
        return [
            own_parts(first, [second]) is own_parts(third, [first]),
            own_parts(first, [second]) is own_parts(first, [second, third]),
        ]

    assert on_a_rank(program) == [True, False]


def test_windows_at_other_offsets_and_with_other_strides_have_partitions_of_their_own() -> None:
    def moved(starts: Sequence[int], by: Sequence[int]) -> tuple[int, ...]:
        return tuple(start + own for start, own in zip(starts, by, strict=True))

    def program() -> None:
        (whole,) = tensors(1, 8, 6)
        window: DeviceTensor = whole.window
        parts = [StridedWindow.of(window.narrow(0, start, 3)) for start in (0, 1, 4)]
        turned = StridedWindow(parts[0].window, (6, 3), (1, 6))
        column = StridedWindow(parts[0].window, (3, 6), (6, 0))
        for out in (whole, *parts, turned):
            for operand in (out, column, turned):
                if len({out.shape, operand.shape}) > 1:
                    continue
                # Twice: derived, and kept.
                for _ in range(2):
                    own = own_parts(out, [operand])
                    placed = {
                        pe: tuple((moved(each.starts, starts), each.axes) for each in regions)
                        for pe, (regions, starts) in own.items()
                    }
                    assert placed == {
                        pe: tuple((each.starts, each.axes) for each in regions)
                        for pe, regions in partition(out, [operand]).items()
                    }
                    assert all(not any(regions[0].starts) for regions, _ in own.values())

    on_a_rank(program)


def test_pes_with_equal_work_have_one_tuple_of_regions() -> None:
    def program() -> int:
        out, operand = tensors(2, 8, 6)
        return len({id(regions) for regions, _ in own_parts(out, [operand]).values()})

    assert on_a_rank(program) == 1
