"""Deadlocks on simulated chips: the wait-for cycle and the state of the queues."""

from collections.abc import Callable

import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.errors import IpcqDeadlock
from runtime.device.launches.launch import launch_on
from runtime.diagnosis.deadlock import deadlock
from runtime.wire.reports import RingAddress
from tests.support.joined import ccl_text, message
from tests.support.lps import reports_of
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
ONE_PE = DPPolicy(num_cubes=1, num_pes=1)


def join() -> None:
    torch.distributed.init_process_group("ahbm", algorithm="ring")


def listen(rank: int) -> None:
    """Every PE receives, and none sends."""
    join()
    torch.launch(
        "listen",
        lambda at: tl.recv("global_W", 1, tl.float32),
        torch.empty(4, dp=DPPolicy(num_cubes=1)),
    )


def mismatched(rank: int) -> None:
    """Rank 0 sends to the east; the others receive from the east as well."""

    def kernel(at: tl.Pointer) -> None:
        if rank == 0:
            tl.send("global_E", message(100))
        else:
            tl.recv("global_E", 100, tl.int8)

    join()
    torch.launch("mismatched", kernel, torch.empty(4, dp=ONE_PE))


def missing(rank: int) -> None:
    """Rank 1 ends without the all-reduce."""
    join()
    tensor = torch.ones(4, dp=ONE_PE)
    if rank != 1:
        torch.distributed.all_reduce(tensor)


def late(rank: int) -> None:
    """Rank 1 waits for another rank in its own kernel before it joins the others."""
    join()
    if rank == 1:
        launch_on("first", lambda: tl.recv("global_W", 1, tl.int8), (), [], [(0, 1)])
    torch.distributed.all_reduce(torch.ones(4, dp=ONE_PE))


def deadlocked(program: Callable[[int], None], sips: int) -> IpcqDeadlock:
    with pytest.raises(IpcqDeadlock) as raised:
        simulate(program, sips, topology=TOPOLOGY)
    return raised.value


@pytest.mark.parametrize(("sips", "order"), [(2, (0, 1)), (3, (0, 2, 1))])
def test_the_cycle_across_sips_is_named(sips: int, order: tuple[int, ...]) -> None:
    cycle = " -> ".join(f"sip {sip} cube 0 pe 0 recv global_W" for sip in order)
    assert deadlocked(listen, sips).waits == (f"cycle: {cycle} -> (back); the same on 1 other PE",)


def test_a_mismatched_direction_is_visible_in_slots_never_received() -> None:
    assert deadlocked(mismatched, 2).waits == (
        (
            "chain: sip 1 cube 0 pe 0 recv global_E -> sip 0 cube 0 pe 0 runs no kernel: "
            "rank 0 has finished its program"
        ),
        "never received: 1 slot from sip 0 cube 0 pe 0 in world/ring global_W of sip 1 cube 0 pe 0",
    )


def test_a_collective_that_one_rank_never_calls_ends_at_that_rank() -> None:
    error = deadlocked(missing, 3)
    assert error.waits[0].endswith(
        "-> sip 1 cube 0 pe 0 runs no kernel: rank 1 has finished its program"
    )
    assert [line.partition(":")[0] for line in error.ranks] == ["rank 0", "rank 2"]


def test_a_rank_that_waits_elsewhere_is_named_with_the_cause() -> None:
    error = deadlocked(late, 2)
    assert (
        "sip 1 cube 0 pe 0 runs no kernel: rank 1 waits for kernel 'first' -> sip 1 cube "
        "0 pe 1 recv global_W"
    ) in error.waits[0]


@pytest.mark.slow
@pytest.mark.parametrize("program", [listen, mismatched, missing, late])
@pytest.mark.parametrize("sips_of_lp", [((0, 1), (2,)), ((0,), (1,), (2,))])
def test_the_text_is_the_same_for_every_partition_into_lps(
    program: Callable[[int], None], sips_of_lp: tuple[tuple[int, ...], ...]
) -> None:
    assert str(deadlock(reports_of(program, sips_of_lp, TOPOLOGY, seed=7))) == str(
        deadlocked(program, 3)
    )


def overrun(rank: int) -> None:
    """Five slots into a ring of two, of which the receiver takes two."""

    def kernel() -> None:
        if tl.program_id(0) == 0:
            for _ in range(5):
                tl.send("E", message(64))
        else:
            for _ in range(2):
                tl.recv("W", 64, tl.int8)

    torch.distributed.init_process_group("ahbm")
    launch_on("overrun", kernel, (), [], [(0, 0), (0, 1)])


def test_the_pointers_of_a_full_ring_are_those_counted_by_hand() -> None:
    with pytest.raises(IpcqDeadlock) as raised:
        simulate(
            overrun,
            1,
            topology=TOPOLOGY,
            ccl=ccl_text("tests.support.joined.pair_0_0_0_1", n_slots=2, slot_size=64),
        )
    # Below the 4 MiB of the scheduler and the 3 x 1 MiB of scratch of a TCM of 16 MiB: one
    # ring of 2 slots of 64 B.
    offset = (16 - 4 - 3) * 2**20 - 2 * 64
    assert raised.value.queues == (
        (
            "sip 0 cube 0 pe 0 world/joined E: sends head 4, peer's tail 2, 0 of 2 credits, "
            f"ring {0x1000_0000 + offset:#x} (tcm of sip 0 cube 0 pe 1 + {offset:#x}); "
            f"receives peer's head 0, tail 0, ring {offset:#x} (tcm of sip 0 cube 0 pe 0 "
            f"+ {offset:#x})"
        ),
        (
            "sip 0 cube 0 pe 1 world/joined W: sends head 0, peer's tail 0, 2 of 2 credits, "
            f"ring {offset:#x} (tcm of sip 0 cube 0 pe 0 + {offset:#x}); "
            f"receives peer's head 4, tail 2, ring {0x1000_0000 + offset:#x} (tcm of sip "
            f"0 cube 0 pe 1 + {offset:#x})"
        ),
    )
    assert raised.value.waits == (
        (
            "cycle: sip 0 cube 0 pe 0 send E -> sip 0 cube 0 pe 1 runs no kernel: rank 0 "
            "waits for kernel 'overrun' -> (back)"
        ),
        "never received: 2 slots from sip 0 cube 0 pe 0 in world/joined W of sip 0 cube 0 pe 1",
    )


def test_a_blocked_send_names_the_line_of_the_kernel() -> None:
    with pytest.raises(IpcqDeadlock) as raised:
        simulate(
            overrun,
            1,
            topology=TOPOLOGY,
            ccl=ccl_text("tests.support.joined.pair_0_0_0_1", n_slots=2, slot_size=64),
        )
    [kernel] = [
        constant for constant in overrun.__code__.co_consts if hasattr(constant, "co_firstlineno")
    ]
    [line] = raised.value.pes
    assert line.endswith(f"test_deadlocks.py:{kernel.co_firstlineno + 3}")


def test_a_receive_without_a_wait_is_named_with_its_line() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.recv_async("global_W", 1, tl.int8)

    def program(rank: int) -> None:
        join()
        torch.launch("unanswered", kernel, torch.empty(4, dp=ONE_PE))

    assert (
        deadlocked(program, 2)
        .pes[0]
        .endswith(f"test_deadlocks.py:{kernel.__code__.co_firstlineno + 1}")
    )


def test_only_queues_of_waiting_pes_and_queues_not_at_rest_are_reported() -> None:
    reports = reports_of(mismatched, ((0,), (1,)), TOPOLOGY, seed=3)
    assert [(queue.pe, queue.direction) for queue in reports[0].queues] == [(0, "global_E")]
    assert [(queue.pe, queue.direction) for queue in reports[1].queues] == [
        (0, "global_E"),
        (0, "global_W"),
    ]


def test_a_run_that_ends_well_reports_no_queue() -> None:
    def program(rank: int) -> None:
        join()
        torch.distributed.all_reduce(torch.ones(4, dp=ONE_PE))

    world = simulate(program, 2, topology=TOPOLOGY)
    assert all(report.queues == () for report in world.done.sips)
    pointers = [
        queue
        for chip in world.node.chips.values()
        for pe in chip.pes
        for queue in pe.ipcq.pointers()
    ]
    assert all(queue.at_rest for queue in pointers)
    # Two ranks exchange one partial sum and one result in each direction; every PE has two
    # directions.
    assert sum(queue.head for queue in pointers) == sum(queue.tail for queue in pointers) > 0


@pytest.mark.parametrize(("kind", "pe"), [("hbm", 0), ("sram", -1), ("tcm", 0)])
def test_rings_in_every_kind_of_memory_are_decoded(kind: str, pe: int) -> None:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")

    world = simulate(
        program,
        1,
        topology=TOPOLOGY,
        ccl=ccl_text("tests.support.joined.pair_0_0_0_1", buffer_kind=kind),
    )
    pointers = world.node.chips[0].pes[0].ipcq.pointers()
    assert [(queue.rx.resource, queue.rx.pe) for queue in pointers] == [(kind, pe)]


def test_a_ring_address_is_shown_with_its_coordinates() -> None:
    assert (
        str(RingAddress(0x1000, "tcm", 1, 2, 3, 0x40)) == "0x1000 (tcm of sip 1 cube 2 pe 3 + 0x40)"
    )
    assert (
        str(RingAddress(0x1000, "sram", 1, 2, -1, 0x40)) == "0x1000 (sram of sip 1 cube 2 + 0x40)"
    )
