"""Cycles and flits from times, bytes and bandwidths, always rounded up."""

import pytest

from runtime.model.schema.topology_schema import NocConfig
from sip_node.chip.fabric.clocked.worm import NocClock, pipeline


def clock(ghz: float, flit_bytes: int) -> NocClock:
    return NocClock(
        NocConfig(
            flow_control="credits",
            vcs=1,
            buffer_flits=1,
            router_stages=4,
            flit_bytes=flit_bytes,
            clock_ghz=ghz,
        )
    )


def test_a_period_is_rounded_up_to_the_picosecond() -> None:
    assert clock(2.0, 128).period_ps == 500
    assert clock(1.5, 128).period_ps == 667


def test_a_time_between_two_edges_belongs_to_the_later_one() -> None:
    assert [clock(1.0, 64).cycle(ps) for ps in (0, 1, 1000, 1001)] == [0, 1, 1, 2]


def test_a_packet_has_a_head_and_whole_flits() -> None:
    assert [clock(1.0, 64).flits(nbytes) for nbytes in (0, 1, 64, 65)] == [1, 1, 1, 2]


def test_a_flit_takes_whole_cycles_on_a_link() -> None:
    # 128 B at 256, 128, 100 and 1000 GB/s are 0.5, 1, 1.28 and 0.128 ns.
    assert [clock(2.0, 128).flit_cycles(gbs) for gbs in (256, 128, 100, 1000)] == [1, 2, 3, 1]


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
def test_the_stages_of_a_pipeline_add_up(stages: int) -> None:
    assert sum(pipeline(stages)) == stages
