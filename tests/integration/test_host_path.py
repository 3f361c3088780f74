"""Requests of the host: order, records, and the common start which the IO_CPU stamps."""

from itertools import pairwise

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.device import Handle
from runtime.core.requests import (
    Extent,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
    PeDmaMsg,
)
from runtime.core.run_tables import OPS
from runtime.core.simtime import NEVER_PS, serialisation_ps
from runtime.core.trace import OpRecord
from runtime.device.rank.rank_state import running_rank
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.recorded import Recorded
from tests.support.topologies import variant_text
from tests.support.world import simulate

SMALL = variant_text(sip__cube_mesh={"w": 2, "h": 2}, cube__pe_layout__pe_per_corner=1)
TOPOLOGY = parse_topology(SMALL, "topology.yaml", 1)


def test_a_command_is_released_when_the_command_before_it_is_complete_at_the_io_cpu() -> None:
    def program(rank: int) -> list[Handle]:
        state = running_rank()
        address = state.addresses.pe_hbm_addr(0, 0, 0, 0)
        handles = [
            state.device.submit([MemoryWriteMsg(address, 4096, bytes(4096))], f"write {n}")
            for n in range(3)
        ]
        state.device.wait(handles[-1])
        return handles

    world = simulate(program, 1, topology=SMALL)
    handles = world.returned[0]
    assert all(handle.done for handle in handles)
    assert [handle.submitted_ps for handle in handles] == [0, 0, 0]
    assert [handle.released_ps for handle in handles[1:]] == [
        handle.device_done_ps for handle in handles[:-1]
    ]
    # The record of a write that waits for others begins when it may change the memory.
    assert [(record.start_ps, record.end_ps) for _, record in world.of("host")] == [
        (handle.released_ps if number else 0, handle.completed_ps)
        for number, handle in enumerate(handles)
    ]
    # The first one is not held; the others have waited in the IO_CPU when they are released. They
    # have come there one packet on the PCIe link later each.
    first, second, third = handles
    packet_ps = serialisation_ps(4096, TOPOLOGY.sip.io_chiplet.pcie_ep.bw_gbs)
    assert [handle.queued_ps for handle in handles] == [
        handle.released_ps - first.released_ps - number * packet_ps
        for number, handle in enumerate(handles)
    ]
    assert (first.queued_ps, first.network_ps) == (0, first.total_ps)
    assert third.completed_ps - second.completed_ps == third.device_done_ps - second.device_done_ps


def test_commands_leave_a_host_with_a_launch_overhead_one_after_the_other() -> None:
    def program(rank: int) -> list[Handle]:
        device = running_rank().device
        handles = [device.submit([], "a point in a stream") for _ in range(4)]
        device.wait(handles[-1])
        return handles

    overhead_ps = 700_000
    ideal, busy = (
        simulate(program, 1, topology=variant_text(host__launch_overhead_ns=ns)).returned[0]
        for ns in (0.0, overhead_ps / 1000)
    )
    # It is longer than the answer takes, so no command finds another one before it.
    assert [handle.completed_ps for handle in busy] == [
        ideal[0].completed_ps + overhead_ps * (index + 1) for index in range(4)
    ]
    assert [handle.queued_ps for handle in busy] == [overhead_ps * index for index in range(1, 5)]


def test_a_copy_has_an_overhead_of_its_own_and_other_commands_have_that_of_a_launch() -> None:
    def program(rank: int) -> list[int]:
        state = running_rank()
        address = state.addresses.pe_hbm_addr(0, 0, 0, 0)
        write = MemoryWriteMsg(address, 16, bytes(16))
        copies = [write], [MemoryReadMsg(address, 16)], [PeDmaMsg(0, 0, "read", address, 16)]
        others = [], [MmuMapMsg(0, ((0, (Extent(1 << 32, 4096, address, "t"),)),))]
        handles = [state.device.submit(each, "") for each in (*copies, [write] * 3, *others)]
        state.device.wait(handles[-1])
        departed = [0, *(handle.departed_ps for handle in handles)]  # type: ignore[attr-defined]
        return [end - start for start, end in pairwise(departed)]

    for copy_ns, each_ps in ((None, 700_000), (300.0, 300_000), (0.0, 0)):
        text = variant_text(host__launch_overhead_ns=700.0, host__copy_overhead_ns=copy_ns)
        assert simulate(program, 1, topology=text).returned[0] == [each_ps] * 4 + [700_000] * 2


def test_the_computation_of_a_host_delays_its_program_beside_the_commands_of_the_device() -> None:
    def program(rank: int) -> tuple[int, int, list[OpRecord]]:
        device = running_rank().device
        records = device.begin_recording()
        address = running_rank().addresses.pe_hbm_addr(0, 0, 0, 0)
        copy = device.submit([MemoryWriteMsg(address, 4, bytes(4))], "")
        device.compute("sort", 5_000_000)
        return copy.total_ps, device.now_ps, records

    copy_ps, now_ps, records = simulate(program, 1, topology=SMALL).returned[0]
    assert 0 < copy_ps < now_ps == 5_000_000
    assert [(each.start_ps, each.end_ps) for each in records if each.name == "sort"] == [
        (0, 5_000_000)
    ]


def test_a_refused_request_names_its_command_and_nothing_of_it_is_sent() -> None:
    def program(rank: int) -> int:
        state = running_rank()
        address = state.addresses.pe_hbm_addr(0, 0, 0, 0)
        requests = [MemoryWriteMsg(address, 4, bytes(4)), MemoryReadMsg(address, 0)]
        with pytest.raises(ValueError, match=r"copying nothing: MemoryReadMsg.* at least one byte"):
            state.device.submit(requests, "copying nothing")
        torch.ahbm.synchronize()
        return torch.ahbm.elapsed_ps()

    assert simulate(program, 1, topology=SMALL).returned[0] == 0


def test_the_requests_of_a_batch_run_together_and_their_results_align() -> None:
    def program(rank: int) -> tuple[Handle, Handle]:
        state = running_rank()
        addresses = [state.addresses.pe_hbm_addr(0, cube, 0, 0) for cube in range(4)]
        write = [
            MemoryWriteMsg(address, 16, bytes([index]) * 16)
            for index, address in enumerate(addresses)
        ]
        written = state.device.wait(state.device.submit(write, "four writes"))
        read = [MemoryReadMsg(address, 16) for address in reversed(addresses)]
        return written, state.device.wait(state.device.submit(read, "four reads"))

    world = simulate(program, 1, topology=SMALL)
    written, read = world.returned[0]
    assert read.results == [bytes([index]) * 16 for index in (3, 2, 1, 0)]
    singles = [record.end_ps - record.start_ps for _, record in world.of("host", "MemoryWriteMsg")]
    assert written.total_ps == max(singles) < sum(singles)


def test_a_command_without_requests_is_a_control_packet_behind_those_before_it() -> None:
    def program(rank: int) -> tuple[Handle, Handle, Handle]:
        device = running_rank().device
        idle = device.wait(device.submit([], "nothing"))
        address = running_rank().addresses.pe_hbm_addr(0, 0, 0, 0)
        write = device.submit([MemoryWriteMsg(address, 4096, bytes(4096))], "a write")
        return idle, write, device.wait(device.submit([], "nothing more"))

    idle, write, point = simulate(program, 1, topology=SMALL).returned[0]
    assert idle.queued_ps == 0 < idle.device_done_ps < idle.completed_ps
    assert point.device_done_ps == point.released_ps == write.device_done_ps
    # The answers are two control packets of 16 B, one behind the other on the 64 GB/s of PCIe.
    assert point.completed_ps == write.completed_ps + 250


@pytest.mark.parametrize("arguments", [0, 100])
def test_every_pe_starts_at_the_stamp_of_a_launch_of_any_size(arguments: int) -> None:
    def program(rank: int) -> None:
        torch.launch(
            "wide",
            lambda at, *rest: tl.load(at, 1),
            torch.empty(16, dp=DPPolicy()),
            *range(arguments),
        )
        torch.ahbm.synchronize()

    world = simulate(program, 1, topology=SMALL)
    [(_, stamp)] = world.of("io_cpu", "launch wide")
    starts = [record.start_ps for _, record in world.of("pe_cpu", "kernel wide")]
    assert starts == [stamp.end_ps] * 16


def test_a_submission_does_not_wait() -> None:
    def program(rank: int) -> int:
        torch.launch("later", lambda at: tl.load(at, 1), torch.empty(4))
        return torch.ahbm.elapsed_ps()

    world = simulate(program, 1, topology=SMALL)
    assert world.returned[0] == 0 < world.time_ps


def test_counters_agree_with_the_records() -> None:
    def program(rank: int) -> None:
        x = torch.from_numpy(np.zeros(64, np.float32))
        torch.launch("touch", lambda at: tl.store(at, tl.load(at, 64) + 1), x)
        torch.ahbm.synchronize()

    world = simulate(program, 1, topology=SMALL)
    counters = world.done.sips[0].counters
    assert (
        counters["dma_bytes"] == sum(record.nbytes for _, record in world.of("pe_dma")) == 2 * 256
    )
    assert counters["sip_messages_sent"] == counters["sip_messages_received"] == 0
    [(_, add)] = world.of("pe_math")
    # 4 cycles of fill and one for each 128 of 64 elements, at 1 GHz.
    assert counters["math_busy_ps"] == 5_000
    assert (add.name, add.shape, add.dtype) == ("add", (64,), "f32")


@pytest.mark.parametrize("packet_bytes", [100, 1000, 3000])
def test_data_is_returned_in_order_when_packets_are_not_whole_rounds_of_the_channels(
    packet_bytes: int,
) -> None:
    """The last packet, of 96 bytes, uses one channel, which may be free before the others."""
    values = np.arange(1024, dtype=np.float32)

    def program(_rank: int) -> bool:
        state = running_rank()
        tensor = torch.from_numpy(values)
        address = tensor.shards[0].address
        read = PeDmaMsg(0, 0, "read", address, values.nbytes)
        back = PeDmaMsg(0, 0, "write", state.addresses.pe_hbm_addr(0, 0, 0, 1 << 20), values.nbytes)
        for request in (read, back):
            state.device.wait(state.device.submit([request], "there and back"))
        copied = state.device.wait(
            state.device.submit([MemoryReadMsg(back.address, values.nbytes)], "the copy")
        )
        return bool((tensor.numpy() == values).all()) and copied.results[0] == values.tobytes()

    assert simulate(program, 1, topology=variant_text(packet_bytes=packet_bytes)).returned[0]


def test_a_dma_that_leaves_the_tcm_is_refused() -> None:
    def program(_rank: int) -> None:
        state = running_rank()
        request = PeDmaMsg(
            0,
            0,
            "read",
            state.addresses.pe_hbm_addr(0, 0, 0, 0),
            128,
            state.topology.tcm_bytes - 100,
        )
        state.device.wait(state.device.submit([request], "too far"))

    with pytest.raises(ValueError, match="it leaves the TCM, which has 16,777,216 bytes"):
        simulate(program, 1, topology=SMALL)


def test_commands_that_wait_for_the_same_one_go_on_in_the_order_of_submission() -> None:
    def program(rank: int) -> list[Handle]:
        state = running_rank()
        device, address = state.device, state.addresses.pe_hbm_addr(0, 0, 0, 0)
        # Of one channel.
        places = [address + (number << 20) for number in range(3)]
        writes = [MemoryWriteMsg(each, 256, bytes(256)) for each in places]
        handles = [device.submit(writes[:1], "the first")]
        for name, write in zip(("the second", "the third"), writes[1:], strict=True):
            device.stream = device.new_stream()
            device.order_after(device.stream, handles[:1])
            handles.append(device.submit([write], name))
        device.synchronize()
        for handle in handles:
            device.wait(handle)
        return handles

    first, second, third = simulate(program, 1, topology=SMALL).returned[0]
    assert second.released_ps == third.released_ps == first.device_done_ps
    # Behind each other on the channel of the slice, which is slower than the links.
    channel_gbs = TOPOLOGY.hbm.pc_bw_gbs * TOPOLOGY.cube.hbm_ctrl.efficiency
    assert third.device_done_ps - second.device_done_ps == serialisation_ps(256, channel_gbs)


def test_a_request_has_queued_before_the_io_cpu_and_behind_it() -> None:
    narrow_gbs, nbytes = 32.0, 4096
    topology = parse_topology(
        variant_text(
            sip__cube_mesh={"w": 1, "h": 1},
            cube__pe_layout__pe_per_corner=1,
            packet_bytes=nbytes,
            ucie__bw_gbs=narrow_gbs,
        ),
        "topology.yaml",
        1,
    )
    recorded, engine = Recorded(), Engine()
    plan = chip_spec(topology, data=False)
    chip = Chip(plan, 0, engine, OpLog(None, recorder=recorded.recorder))
    for pe in (0, 1):
        request = MemoryWriteMsg(plan.addresses.pe_hbm_addr(0, 0, pe, 0), nbytes, b"")
        chip.host.submit([request], f"to PE {pe}", stream=pe)
    engine.run_before(NEVER_PS)
    chip.log.flush()
    first, second = sorted(recorded.rows(OPS), key=lambda row: row["end_ps"])
    first_gbs = topology.sip.io_chiplet.pcie_ep.bw_gbs
    before_ps, behind_ps = (serialisation_ps(nbytes, gbs) for gbs in (first_gbs, narrow_gbs))
    assert before_ps < behind_ps
    # One packet behind another on the link of the host; on the narrow one the rest, together the
    # time of a packet there.
    assert first["link_ps"] == 0
    assert second["link_ps"] == behind_ps
