"""Receives on a simulated chip: from any direction, asynchronous, to a given address."""

from collections.abc import Callable

import numpy as np
import pytest

from coordinator.verify.check import verify
from runtime import DPPolicy, tl, torch
from runtime.ccl.mappers import Mapping
from runtime.core.errors import IpcqDeadlock, KernelError, PageFaultError
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.language.value import Value
from runtime.model.addresses import AddressMap
from runtime.model.topology import Topology, parse_topology
from tests.support.joined import ccl_text
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TOPOLOGY = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)
CENTRE, WEST, EAST, NORTH = (0, 0), (0, 1), (0, 2), (0, 3)
"""PEs of a cube: the centre has the others at its W, E and N."""


ADDRESSES = AddressMap(parse_topology(TOPOLOGY, "topology.yaml", 1))
ELEMENTS = np.arange(1024).astype(np.int8)
Kernel = Callable[[tl.Pointer], object]


def idle(_: tl.Pointer) -> None:
    pass


def star(topology: Topology, root_cube: int) -> Mapping:
    peers = {
        CENTRE: {"W": WEST, "E": EAST, "N": NORTH},
        WEST: {"E": CENTRE},
        EAST: {"W": CENTRE},
        NORTH: {"S": CENTRE},
    }
    return Mapping(tuple(peers), peers, frozenset())


def converse(
    centre: Kernel,
    west: Kernel = idle,
    east: Kernel = idle,
    north: Kernel = idle,
    *,
    data: bool = True,
    **queue: object,
) -> Simulation:
    """Run one kernel on each PE of the star, each with a pointer to `ELEMENTS`; return the
    elements.

    The op log must replay to the same memories.
    """

    def kernel(at: tl.Pointer) -> None:
        (centre, west, east, north)[tl.program_id(0)](at)

    def program(rank: int) -> np.ndarray:
        torch.distributed.init_process_group("ahbm")
        tensor = torch.from_numpy(ELEMENTS, dp=DPPolicy(num_cubes=1, num_pes=1))
        launch_on(
            "converse",
            kernel,
            (tl.Pointer(tensor.address, tensor.dtype),),
            [tensor],
            [CENTRE, WEST, EAST, NORTH],
        )
        torch.ahbm.synchronize()
        return tensor.numpy()

    world = simulate(
        program,
        1,
        topology=TOPOLOGY,
        ccl=ccl_text(f"{__name__}.star", **queue),
        data=data,
        verify=data,
    )
    if data:
        verdict = verify(world.records, world.written, world.contents, ADDRESSES)
        assert verdict.passed, verdict.problems
    return world


def sends(way: str, *numbers: int, size: int = 64) -> Kernel:
    """A kernel that sends messages of the given lengths; elements of a message are equal."""

    def kernel(_: tl.Pointer) -> None:
        for number in numbers:
            tl.send(way, tl.full(size, number, tl.int8))

    return kernel


def content(value: Value | None) -> list[int]:
    assert value is not None
    assert value.data is not None
    return value.data.reshape(-1).tolist()


def busy(operations: int) -> None:
    for _ in range(operations):
        with tl.scratch():
            tl.zeros(64_000, tl.int8)


def records(world: Simulation, name: str) -> list[OpRecord]:
    return [record for _, record in world.of("pe_dma", name)]


def test_a_receive_from_any_direction_serves_full_rings_alternately() -> None:
    got: list[int] = []

    def centre(_: tl.Pointer) -> None:
        busy(10)
        got.extend(content(tl.recv(None, 64, tl.int8))[0] for _ in range(6))

    converse(centre, sends("E", 10, 11), sends("W", 20, 21), sends("S", 30, 31))
    # All rings were full, so E, N and W alternate: the names in alphabetical order.
    assert got == [20, 30, 10, 21, 31, 11]


def test_a_receive_from_any_direction_takes_the_first_arrival() -> None:
    got: list[int] = []

    def centre(_: tl.Pointer) -> None:
        got.extend(content(tl.recv(None, 64, tl.int8))[0] for _ in range(2))

    def late(at: tl.Pointer) -> None:
        busy(3)
        sends("W", 2)(at)

    converse(centre, sends("E", 1), late)
    assert got == [1, 2]


def test_a_message_of_several_slots_is_not_mixed_with_another_one() -> None:
    got: list[list[int]] = []

    def centre(_: tl.Pointer) -> None:
        pending = [tl.recv_async(None, 300, tl.int8) for _ in range(2)]
        got.extend(content(tl.wait(each)) for each in pending)

    converse(centre, sends("E", 1, size=300), sends("W", 2, size=300), slot_size=64, n_slots=2)
    assert sorted(got) == [[1] * 300, [2] * 300]


def test_receives_of_one_direction_are_served_in_the_order_of_the_calls() -> None:
    got: list[int] = []

    def centre(_: tl.Pointer) -> None:
        first, second = tl.recv_async("W", 64, tl.int8), tl.recv_async("W", 64, tl.int8)
        got.extend(content(tl.wait(each))[0] for each in (second, first))

    converse(centre, sends("E", 1, 2))
    assert got == [2, 1]


def test_a_receive_continues_while_the_kernel_computes() -> None:
    def centre(_: tl.Pointer) -> None:
        pending = tl.recv_async("W", 64, tl.int8)
        busy(5)
        assert content(tl.wait(pending)) == [7] * 64

    world = converse(centre, sends("E", 7))
    [received] = records(world, "ipcq_recv")
    assert received.end_ps < max(
        record.end_ps for _, record in world.of("pe_math") if record.pe == CENTRE[1]
    )


def test_a_kernel_ends_after_all_that_it_started() -> None:
    def late(at: tl.Pointer) -> None:
        busy(5)
        sends("E", 7)(at)

    world = converse(lambda _: tl.recv_async("W", 64, tl.int8), late)
    [received] = records(world, "ipcq_recv")
    ends = {record.pe: record.end_ps for _, record in world.of("pe_cpu", "kernel converse")}
    assert ends[CENTRE[1]] >= received.end_ps


def test_a_receive_over_a_value_changes_its_views() -> None:
    seen: list[list[int]] = []

    def centre(_: tl.Pointer) -> None:
        buffer = tl.zeros((8, 16), tl.int8)
        view = buffer[2:4]
        for _ in range(2):
            assert tl.recv("W", dst_addr=buffer, dst_space="tcm") is buffer
            seen.append(content(view))

    def west(at: tl.Pointer) -> None:
        for turn in range(2):
            tl.send("E", tl.load(at + turn, (8, 16)))

    world = converse(centre, west, slot_size=64)
    assert seen == [[*range(32, 64)], [*range(33, 65)]]
    [(_, zeros)] = world.of("pe_math", "full")
    assert {record.address for record in records(world, "ipcq_recv")} == {
        zeros.address,
        zeros.address + 64,
    }


def test_a_receive_over_a_view_with_gaps_does_not_change_the_gaps() -> None:
    seen: list[list[int]] = []

    def centre(_: tl.Pointer) -> None:
        buffer = tl.zeros((4, 4), tl.int8)
        tl.recv("W", (4, 2), tl.int8, dst_addr=buffer[:, 1:3])
        seen.append(content(buffer + 0))

    converse(centre, sends("E", 1, size=8))
    assert seen == [[0, 1, 1, 0] * 4]


def test_a_receive_to_memory_uses_no_scratch() -> None:
    def centre(at: tl.Pointer) -> None:
        assert tl.recv("W", 1000, tl.int8, dst_addr=at + 10, dst_space="hbm") is None

    world = converse(centre, lambda at: tl.send("E", tl.load(at, 1000)), slot_size=256)
    expected = ELEMENTS.copy()
    expected[10:1010] = ELEMENTS[:1000]
    assert world.returned[0].tolist() == expected.tolist()
    received, written = records(world, "ipcq_recv"), records(world, "ipcq_send")
    assert [record.nbytes for record in received] == [256, 256, 256, 232]
    assert [record.inputs[0].address for record in received] == [
        record.address for record in written
    ]
    assert [record.address - received[0].address for record in received] == [0, 256, 512, 768]


def test_a_receive_to_memory_that_is_not_mapped_is_a_page_fault() -> None:
    with pytest.raises(
        PageFaultError, match="64 bytes at virtual address 0x1000003e8 are not mapped"
    ):
        converse(lambda at: tl.recv("W", 64, tl.int8, dst_addr=at + 1000))


def test_a_view_with_gaps_is_sent_packed() -> None:
    got: list[list[int]] = []

    world = converse(
        lambda _: got.append(content(tl.recv("W", (4, 2), tl.int8))),
        lambda at: tl.send("E", tl.load(at, (4, 8))[:, 2:4]),
    )
    assert got == [[2, 3, 10, 11, 18, 19, 26, 27]]
    [sent] = records(world, "ipcq_send")
    assert (sent.inputs[0].shape, sent.inputs[0].strides, sent.strides) == ((4, 2), (8, 1), ())


def test_a_receive_that_has_failed_takes_no_later_slot() -> None:
    def centre(_: tl.Pointer) -> None:
        pending = tl.recv_async("W", dst_addr=tl.zeros((64, 8), tl.int8)[:, :4])
        # The other slots of the message arrive here, before the kernel waits for the receive.
        busy(5)
        tl.wait(pending)

    with pytest.raises(KernelError, match="256 bytes: it must fit a slot of 64 bytes"):
        converse(centre, sends("E", 0, size=256), slot_size=64)


@pytest.mark.parametrize("operation", ["send", "recv"])
def test_a_view_with_gaps_has_to_fit_a_slot(operation: str) -> None:
    def centre(_: tl.Pointer) -> None:
        view = tl.zeros((64, 8), tl.int8)[:, :4]
        if operation == "send":
            tl.send("W", view)
        else:
            tl.recv("W", dst_addr=view)

    with pytest.raises(
        KernelError,
        match=rf"{operation} .* view with gaps, 256 bytes: it must fit a slot of 64 bytes",
    ):
        converse(centre, sends("E", 0, size=256), slot_size=64)


def test_a_receive_of_another_type_names_both_pes_and_both_types() -> None:
    def centre(_: tl.Pointer) -> None:
        tl.recv("W", 32, tl.float16)

    with pytest.raises(KernelError) as raised:
        converse(centre, sends("E", 1))
    assert raised.value.coordinates == (0, *CENTRE)
    assert raised.value.problem == (
        "recv from W expects 64 bytes of f16 in this slot, 64 bytes of i8 came from sip "
        "0 cube 0 pe 1"
    )
    assert raised.value.line.endswith(f"test_receives.py:{centre.__code__.co_firstlineno + 1}")


def test_an_error_of_a_receive_names_the_line_of_its_call() -> None:
    def centre(_: tl.Pointer) -> None:
        pending = tl.recv_async("W", 8, tl.int8)
        busy(1)
        tl.wait(pending)

    with pytest.raises(KernelError) as raised:
        converse(centre, sends("E", 1))
    assert raised.value.line.endswith(f"test_receives.py:{centre.__code__.co_firstlineno + 1}")


def test_a_receive_from_any_direction_without_an_arrival_is_a_deadlock() -> None:
    with pytest.raises(IpcqDeadlock) as raised:
        converse(lambda _: tl.recv(None, 1, tl.int8))
    assert len(raised.value.pes) == 1
    assert "sip 0 cube 0 pe 0" in raised.value.pes[0]
    assert "recv any" in raised.value.pes[0]


def test_a_receive_without_any_queue_is_refused() -> None:
    def program(rank: int) -> None:
        torch.launch("listen", lambda at: tl.recv(None, 1, tl.float32), torch.zeros(1))
        torch.ahbm.synchronize()

    with pytest.raises(KernelError, match="recv from any direction: no queue is installed here"):
        simulate(program, 1, topology=TOPOLOGY)


def test_receives_take_the_same_time_without_data() -> None:
    def centre(at: tl.Pointer) -> None:
        pending = tl.recv_async("W", 300, tl.int8)
        tl.recv("E", 300, tl.int8, dst_addr=at)
        tl.recv(None, dst_addr=tl.zeros(300, tl.int8))
        tl.wait(pending)

    def times(*, data: bool) -> list[tuple[int, int]]:
        world = converse(
            centre,
            sends("E", 1, size=300),
            sends("W", 1, size=300),
            sends("S", 1, size=300),
            data=data,
            slot_size=128,
        )
        return [(record.start_ps, record.end_ps) for record in records(world, "ipcq_recv")]

    assert times(data=True) == times(data=False)
