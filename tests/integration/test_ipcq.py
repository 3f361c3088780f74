"""Pairs of queues on a simulated chip: slots, credits, back-pressure, deadlock."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core import dtypes
from runtime.core.config.config_file import default_file
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import InvariantError, IpcqDeadlock, IpcqInstallError
from runtime.core.requests import QueuePair
from runtime.device.launches.launch import launch_on
from runtime.model.directions import OPPOSITE
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.pe.ipcq import PeIpcq
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.joined import ccl_text, message
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
SOURCE, TARGET = (0, 0), (0, 1)
PAIR = "tests.support.joined.pair_0_0_0_1"


def converse(source: Callable[[], Any], target: Callable[[], Any], **queue: object) -> Simulation:
    """Run two kernels on PE 0 and PE 1 of a cube: E of the first is joined to W of the second."""

    def kernel() -> None:
        (source, target)[tl.program_id(0)]()

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("converse", kernel, (), [], [SOURCE, TARGET])
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=TOPOLOGY, ccl=ccl_text(PAIR, **queue))


def send(count: int, nbytes: int) -> Callable[[], None]:
    def kernel() -> None:
        for _ in range(count):
            tl.send("E", message(nbytes))

    return kernel


def receive(count: int, nbytes: int, delay: int = 0) -> Callable[[], None]:
    def kernel() -> None:
        for _ in range(delay):
            _ = message(64_000) + 1
        for _ in range(count):
            with tl.scratch():
                tl.recv("W", nbytes, dtypes.int8)

    return kernel


def sends(world: Simulation) -> list[Any]:
    return [record for _, record in world.of("pe_dma", "ipcq_send")]


def receives(world: Simulation) -> list[Any]:
    return [record for _, record in world.of("pe_dma", "ipcq_recv")]


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_sender_is_at_most_the_slots_of_the_ring_ahead(slots: int) -> None:
    world = converse(send(8, 256), receive(8, 256, delay=2), n_slots=slots, slot_size=256)
    sent, received = sends(world), receives(world)
    assert len(sent) == len(received) == 8
    for index in range(8 - slots):
        assert sent[index + slots].start_ps > received[index].end_ps
    # The ring filled up while the receiver was busy.
    assert sent[slots - 1].end_ps < received[0].start_ps


def test_slots_are_used_in_order() -> None:
    world = converse(send(5, 64), receive(5, 64), n_slots=2, slot_size=64)
    addresses = [record.address for record in sends(world)]
    assert [address - addresses[0] for address in addresses] == [0, 64, 0, 64, 0]
    assert [record.inputs[0].address for record in receives(world)] == addresses


def test_credits_name_the_slots_in_order() -> None:
    def kernel(rank: int) -> None:
        for _ in range(5):
            if rank == 0:
                tl.send("global_E", message(64))
            else:
                tl.recv("global_W", 64, dtypes.int8)

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("five slots", kernel, (rank,), [], [SOURCE])
        torch.ahbm.synchronize()

    world = simulate(
        program, 2, topology=TOPOLOGY, ccl=ccl_text("leader_only", n_slots=2, slot_size=64)
    )
    credits_home = [record.address for _, record in world.of("ucie.sip0", "ipcq_credit")]
    assert [address - credits_home[0] for address in credits_home] == [0, 64, 0, 64, 0]


def test_a_message_larger_than_a_slot_is_sent_as_several() -> None:
    world = converse(send(1, 1000), receive(1, 1000), slot_size=256)
    assert [record.nbytes for record in sends(world)] == [256, 256, 256, 232]
    assert len(receives(world)) == 4


def test_a_message_larger_than_the_whole_ring_passes_through_it() -> None:
    world = converse(send(1, 1000), receive(1, 1000), slot_size=64, n_slots=1)
    assert len(sends(world)) == 16


def test_messages_are_received_as_sent_and_in_order() -> None:
    values: list[list[int]] = []

    def source() -> None:
        for size in (3, 500, 1):
            tl.send("E", message(size))

    def target() -> None:
        for size in (3, 500, 1):
            received = tl.recv("W", size, dtypes.int8)
            assert received.data is not None
            values.append(received.data.tolist())

    converse(source, target, slot_size=128, n_slots=2)
    assert values == [np.arange(size).astype(np.int8).tolist() for size in (3, 500, 1)]


def test_a_credit_travels_the_fabric_and_not_faster() -> None:
    world = converse(send(2, 64), receive(2, 64), n_slots=1, slot_size=64)
    second, first_read = sends(world)[1], receives(world)[0]
    # PE 1 to PE 0: six routers at 1 ns, five steps of 2 mm, 16 B at 256 GB/s rounded up, the IPCQ
    # at 1 ns.
    assert second.start_ps - first_read.end_ps == 6_000 + 100 + 63 + 1_000


def test_both_directions_of_a_pair_work_simultaneously() -> None:
    def exchange(way: str) -> Callable[[], None]:
        def kernel() -> None:
            tl.send(way, message(512))
            tl.recv(way, 512, dtypes.int8)

        return kernel

    assert len(receives(converse(exchange("E"), exchange("W")))) == 2


def test_kernels_that_only_receive_are_a_deadlock_that_lists_every_pe() -> None:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm="ring")
        torch.launch(
            "listen",
            lambda at: tl.recv("global_W", 1, tl.float32),
            torch.empty(4, dp=DPPolicy(num_cubes=1)),
        )
        torch.ahbm.synchronize()

    with pytest.raises(IpcqDeadlock) as raised:
        simulate(program, 2, topology=TOPOLOGY)
    expected = [
        f"sip {s} cube 0 pe {pe}: kernel 'listen' recv global_W (sip {1 - s} cube 0 pe {pe})"
        for s in (0, 1)
        for pe in (0, 1)
    ]
    assert [line.partition(" since ")[0] for line in raised.value.pes] == expected
    assert len(raised.value.ranks) == 2


def test_senders_without_a_receiver_are_a_deadlock_when_the_ring_is_full() -> None:
    with pytest.raises(IpcqDeadlock) as raised:
        converse(send(5, 64), lambda: None, n_slots=4)
    [line] = raised.value.pes
    assert line.startswith("sip 0 cube 0 pe 0: kernel 'converse' send E (sip 0 cube 0 pe 1) since ")


def chip() -> Chip:
    topology = parse_topology(TOPOLOGY, "topology.yaml", 1)
    return Chip(chip_spec(topology, data=True), 0, Engine(), OpLog(None))


def pair(direction: str, rx_base: int, tx_base: int = 1 << 20) -> QueuePair:
    return QueuePair(
        direction, PeCoordinates(0, 0, 1), OPPOSITE[direction], rx_base, tx_base, 4, 256, 16, 256
    )


def ipcq() -> PeIpcq:
    return chip().pe(PeCoordinates(0, 0, 0)).ipcq


def test_a_pe_installs_each_queue_table_once() -> None:
    queues = ipcq()
    queues.install("world/ring", [pair("E", 0)])
    queues.install("world/tree", [pair("E", 4096)])
    with pytest.raises(IpcqInstallError) as raised:
        queues.install("world/ring", [pair("W", 8192)])
    complaint = "the queues 'world/ring' are installed already; a PE takes each table once"
    assert str(raised.value) == f"ipcq install on sip 0 cube 0 pe 0: {complaint}"


def test_receive_rings_that_overlap_are_refused() -> None:
    with pytest.raises(IpcqInstallError, match=r"receive rings of t E and t W overlap at 0x200"):
        ipcq().install("t", [pair("E", 0), pair("W", 512)])


def test_receive_rings_of_two_tables_that_overlap_are_refused() -> None:
    queues = ipcq()
    queues.install("one", [pair("E", 512)])
    with pytest.raises(
        IpcqInstallError, match=r"receive rings of one E and two E overlap at 0x200"
    ):
        queues.install("two", [pair("E", 0, tx_base=1 << 21)])


def test_rings_that_touch_do_not_overlap() -> None:
    queues = ipcq()
    queues.install("t", [pair("W", 1024), pair("E", 0)])
    assert queues.table("t").directions == ("E", "W")
    assert queues.table("t").pair("W").rx_base == 1024


def test_a_direction_without_credits_sleeps_and_one_without_arrivals_too() -> None:
    whole = ipcq()
    whole.install("t", [pair("E", 0, tx_base=0x10_0000)])
    queues = whole.table("t")
    queue = queues.queue("E")
    assert queue is not None
    slots = [queue.acquire() for _ in range(5)]
    assert [slot.value for slot in slots[:4]] == [0x10_0000 + 256 * index for index in range(4)]
    assert not slots[4].done
    assert not queue.arrived


def test_the_law_of_credits_names_the_queue_and_both_numbers() -> None:
    queues = ipcq()
    queues.install("t", [pair("E", 0)])
    queues.check_idle()
    (queue,) = queues.table("t").queues
    queue.acquire()
    with pytest.raises(InvariantError) as raised:
        queues.check_idle()
    assert "sip 0 cube 0 pe 0, t E" in str(raised.value)
    assert "3 of 4 credits are home: sip 0 cube 0 pe 1 has not received the others" in str(
        raised.value
    )


@pytest.mark.parametrize("kind", ["tcm", "hbm", "sram"])
def test_a_message_sent_before_the_receiver_installs_its_queues_arrives_afterwards(
    kind: str,
) -> None:
    def program(rank: int) -> float:
        if rank == 1:
            torch.zeros(100_000)
        torch.distributed.init_process_group("ahbm")
        installed_ps = torch.ahbm.elapsed_ps()
        total = torch.full((8,), rank + 1)
        torch.distributed.all_reduce(total)
        assert (total.numpy() == 3).all()
        return installed_ps

    world = simulate(
        program,
        2,
        topology=TOPOLOGY,
        ccl=default_file("ccl.yaml").read_text().replace("kind: tcm", f"kind: {kind}"),
    )
    sends = [record.end_ps for sip, record in world.of("pe_dma", "ipcq_send") if sip == 0]
    assert min(sends) < world.returned[1], "rank 0 has sent before rank 1 was ready"
