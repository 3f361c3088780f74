"""Prints and assertions of kernels on the chip: order, times, and what they cost."""

from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.errors import KernelError
from runtime.language.value import Pointer
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
EVERYWHERE = DPPolicy(cube="row_wise", pe="row_wise")


def run(*, prints: bool, limit: float = 100.0, data: bool = True) -> Any:
    """Two SIPs whose PEs load 4 elements, print them twice, and assert a limit."""

    def kernel(x: Pointer) -> None:
        pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        if prints:
            tl.device_print("first", pe)
        block = tl.load(x + pe * 4, 4)
        below = block < limit
        if prints:
            tl.device_print("loaded", block)
            tl.device_assert(below, "too large")

    def program(rank: int) -> None:
        x = torch.from_numpy(np.arange(16, dtype=np.float32) + 50 * rank, dp=EVERYWHERE)
        torch.launch("k", kernel, x)
        torch.ahbm.synchronize()

    return simulate(program, 2, topology=TOPOLOGY, data=data)


def test_lines_come_in_the_order_of_time_sip_cube_and_pe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = run(prints=True)
    places = [(line.time_ps, line.sip, line.cube, line.pe) for line in world.prints]
    assert places == sorted(places)
    assert [line.text for line in world.prints[:3]] == ["first: 0", "first: 1", "first: 2"]
    # Each PE is at the time at which its load ended.
    ends = {
        (sip, record.cube, record.pe): record.end_ps for sip, record in world.of("pe_dma", "load")
    }
    loaded = [line for line in world.prints if line.text.startswith("loaded: f32 (4,) [")]
    compare_ps = {line.time_ps - ends[line.sip, line.cube, line.pe] for line in loaded}
    assert len(loaded) == len(ends) == 8
    # The comparison takes the same time on all PEs.
    assert len(compare_ps) == 1
    assert capsys.readouterr().out.splitlines() == [str(line) for line in world.prints]
    assert str(loaded[5]).endswith(
        "] sip 1 cube 0 pe 1: kernel 'k': loaded: f32 (4,) [54., 55., 56., 57.]"
    )


@pytest.mark.parametrize("data", [True, False])
def test_prints_and_assertions_take_no_time_and_change_no_digest(*, data: bool) -> None:
    with_prints, without = run(prints=True, data=data), run(prints=False, data=data)
    assert with_prints.digests == without.digests
    assert with_prints.time_ps == without.time_ps


def test_a_failed_assertion_has_the_time_and_what_was_printed_before_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(KernelError) as raised:
        run(prints=True, limit=56.0)
    assert raised.value.problem.startswith(
        "tl.device_assert: too large: element (2,) of shape (4,) is False (2 are), at "
    )
    assert raised.value.coordinates == (1, 0, 1)
    assert f"at {raised.value.problem.rpartition(' at ')[2]}" in str(raised.value)
    assert "sip 1 cube 0 pe 1: kernel 'k': loaded: " in capsys.readouterr().out


def test_without_data_an_assertion_checks_nothing_and_prints_show_shapes() -> None:
    world = run(prints=True, limit=0.0, data=False)
    assert {line.text for line in world.prints if line.text.startswith("loaded")} == {
        "loaded: f32 (4,)"
    }
