"""Messages that the M_CPUs count at the barrier of a launch."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.kernel import LaunchBarrier
from sip_node.chip.mapping.stored_ranges import StoredRanges
from sip_node.chip.store_order import KernelOrder, OrderedStore, StoreOrders


def test_a_cube_and_a_launch_are_complete_each_time_that_all_have_arrived() -> None:
    barrier = LaunchBarrier({2: [0, 3], 5: [1]})
    assert barrier.first_cube == 2
    for _ in range(2):
        assert [barrier.arrived(2), barrier.arrived(5), barrier.arrived(2)] == [False, True, True]
        assert [barrier.cube_arrived(), barrier.cube_arrived()] == [False, True]


def test_the_missing_pes_are_those_that_do_not_wait() -> None:
    barrier = LaunchBarrier({5: [1], 2: [0, 3]})
    barrier.waiting[2, 3] = None
    assert barrier.missing == [(2, 0), (5, 1)]


def test_stores_before_a_barrier_conflict_with_none_behind_it() -> None:
    stored = StoredRanges()
    barrier, block = LaunchBarrier({0: [0, 1]}, stored), Operand(4096, (4,), "f32")
    kernels = [KernelOrder(StoreOrders()) for _ in range(2)]
    first, second = [
        OrderedStore(kernel.own, PeCoordinates(0, 0, pe), 0) for pe, kernel in enumerate(kernels)
    ]
    assert stored.add(block, first) is None
    assert stored.add(block, second) is not None
    assert barrier.cube_arrived()
    assert stored.add(block, second) is None
