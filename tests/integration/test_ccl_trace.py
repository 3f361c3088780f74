"""The trace of sends and receives: `KERNBENCH_CCL_TRACE`."""

import pytest

from runtime import tl, torch
from runtime.core.errors import UsageError
from runtime.device.launches.launch import launch_on
from runtime.wire.environment import CCL_TRACE, ccl_trace_requested
from tests.support.joined import ccl_text, message
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)


def three_slots() -> Simulation:
    """160 bytes through a ring of two slots of 64, from PE 0 to PE 1."""

    def kernel() -> None:
        if tl.program_id(0) == 0:
            tl.send("E", message(160))
        else:
            tl.recv("W", 160, tl.int8)

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("three", kernel, (), [], [(0, 0), (0, 1)])

    return simulate(
        program,
        1,
        topology=TOPOLOGY,
        ccl=ccl_text("tests.support.joined.pair_0_0_0_1", n_slots=2, slot_size=64),
    )


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    monkeypatch.setenv(CCL_TRACE, "1")
    return three_slots()


def test_every_slot_sent_and_received_is_reported_with_kernel_peer_and_address(
    traced: Simulation,
) -> None:
    # Below the 4 MiB of the scheduler and the 3 x 1 MiB of scratch of a TCM of 16 MiB: one
    # ring of 2 slots of 64 B.
    offset = (16 - 4 - 3) * 2**20 - 2 * 64
    ring = 0x1000_0000 + offset
    printed = [str(each).partition("  ")[2] for each in traced.transfers]
    expected = [(0, 64), (1, 64), (0, 32)]
    assert [line for line in printed if " send " in line] == [
        f"sip 0 cube 0 pe 0: kernel 'three' send E -> sip 0 cube 0 pe 1, {nbytes} B i8, "
        f"slot {slot} at {ring + 64 * slot:#x} "
        f"(tcm of sip 0 cube 0 pe 1 + {offset + 64 * slot:#x})"
        for slot, nbytes in expected
    ]
    assert [line for line in printed if " recv " in line] == [
        f"sip 0 cube 0 pe 1: kernel 'three' recv W <- sip 0 cube 0 pe 0, {nbytes} B i8, "
        f"slot {slot} at {ring + 64 * slot:#x} "
        f"(tcm of sip 0 cube 0 pe 1 + {offset + 64 * slot:#x})"
        for slot, nbytes in expected
    ]


def test_the_times_are_those_of_the_op_log_in_order(traced: Simulation) -> None:
    records = [record for _, record in traced.of("pe_dma", "ipcq_")]
    assert [each.time_ps for each in traced.transfers] == [record.end_ps for record in records]
    assert [f"ipcq_{each.operation}" for each in traced.transfers] == [
        record.name for record in records
    ]


def test_each_line_is_printed_with_the_sip_in_front(
    traced: Simulation, capsys: pytest.CaptureFixture[str]
) -> None:
    three_slots()
    assert capsys.readouterr().err.splitlines() == [f"[sip 0] {each}" for each in traced.transfers]


@pytest.mark.parametrize("value", ["", "0", None])
def test_nothing_is_traced_without_the_variable(
    value: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(CCL_TRACE, raising=False) if value is None else monkeypatch.setenv(
        CCL_TRACE, value
    )
    assert three_slots().transfers == []
    assert capsys.readouterr().err == ""


def test_the_trace_changes_nothing_in_the_run(
    traced: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CCL_TRACE)
    assert three_slots().digests == traced.digests


@pytest.mark.parametrize("value", ["2", "yes", "true", " 1"])
def test_a_value_of_the_variable_other_than_0_and_1_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CCL_TRACE, value)
    with pytest.raises(UsageError) as raised:
        ccl_trace_requested()
    assert str(raised.value) == (
        f"KERNBENCH_CCL_TRACE is {value!r}: 1 prints every send and receive, 0 or nothing does not"
    )
