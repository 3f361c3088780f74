"""Rows, banks, activation limits and refresh of one pseudo channel, against sums by hand."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runtime.model.topology import Topology
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.banks import BankedChannel, BankedChannels
from tests.support.topologies import variant

READS, WRITES = False, True
NS = 1000
RCD, RP, RAS, RRD, FAW, BURST = 20, 15, 30, 3, 16, 8
"""Times in ns; a burst of 256 B at 32 GB/s."""
STILL = {
    "hbm__banks__t_rcd_ns": RCD,
    "hbm__banks__t_rp_ns": RP,
    "hbm__banks__t_ras_ns": RAS,
    "hbm__banks__t_rrd_ns": RRD,
    "hbm__banks__t_faw_ns": FAW,
    "hbm__banks__t_refi_ns": 0,
}


def channel(**changes: float) -> BankedChannel:
    return BankedChannel("pc0", variant(**STILL | changes))


def burst(pc: BankedChannel, row: int, at_ns: float = 0, arrived_ns: float = 0) -> float:
    """The begin of the column of a burst of a row, in ns."""
    parts = (round(arrived_ns * NS), [(row, 256)])
    return pc.serve(parts, round(at_ns * NS), round(at_ns * NS), READS)[0] / NS


def test_a_closed_row_is_activated_first_and_an_open_row_is_hit() -> None:
    pc = channel()
    assert [burst(pc, 0), burst(pc, 0), burst(pc, 0, at_ns=100)] == [RCD, RCD + BURST, 100]


def test_a_conflict_precharges_and_activates_after_the_row_was_open_for_its_least_time() -> None:
    pc = channel()
    burst(pc, 0)
    # Row 16 is the second row of bank 0: tRAS from the activation at 0, then tRP and tRCD.
    assert burst(pc, 16) == RAS + RP + RCD
    # After an access at 200, the columns of the row before are long past.
    assert burst(pc, 0, at_ns=200, arrived_ns=200) == 200 + RP + RCD


def test_a_precharge_waits_for_the_last_column_of_the_row() -> None:
    pc = channel()
    pc.serve((0, [(0, 1024)]), 0, 0, READS)
    assert burst(pc, 16) == RCD + 32 + RP + RCD


def test_rows_of_other_banks_are_activated_while_the_bus_is_busy() -> None:
    pc = channel()
    assert [burst(pc, row) for row in range(4)] == [RCD + BURST * index for index in range(4)]


def test_a_row_is_not_activated_before_its_access_arrives() -> None:
    pc = channel()
    burst(pc, 0)
    assert burst(pc, 1, at_ns=28, arrived_ns=25) == 25 + RCD


def test_activations_keep_their_distance_and_five_take_the_window() -> None:
    pc = channel(hbm__pc_bw_gbs=256)
    begins = [burst(pc, row) for row in range(9)]
    activations = [0, RRD, 2 * RRD, 3 * RRD, FAW, FAW + RRD, FAW + 2 * RRD, FAW + 3 * RRD, 2 * FAW]
    assert begins == [RCD + each for each in activations]


def test_a_change_of_direction_costs_the_penalty() -> None:
    pc = channel(cube__hbm_ctrl__switch_penalty_ns=5)
    parts = (0, [(0, 256)])
    begins = [pc.serve(parts, 0, 0, writes)[0] / NS for writes in (READS, WRITES, WRITES, READS)]
    turns = [0, 1, 1, 2]
    assert begins == [
        RCD + index * BURST + 5 * turn for index, turn in zip(range(4), turns, strict=True)
    ]


def test_a_refresh_waits_for_the_column_in_progress_and_closes_all_rows() -> None:
    pc = channel(hbm__banks__t_refi_ns=100, hbm__banks__t_rfc_ns=40)
    burst(pc, 0)
    # Until 102; then tRFC, and the row is opened again.
    assert burst(pc, 0, at_ns=94) == 94
    assert burst(pc, 0) == 102 + 40 + RCD
    assert burst(pc, 0) == 102 + 40 + RCD + BURST


def test_refreshes_of_an_idle_channel_only_close_its_rows() -> None:
    pc = channel(hbm__banks__t_refi_ns=100, hbm__banks__t_rfc_ns=40)
    burst(pc, 0)
    assert burst(pc, 0, at_ns=1050, arrived_ns=1050) == 1050 + RCD
    # The refresh of 1100 is in progress.
    assert burst(pc, 0, at_ns=1110, arrived_ns=1110) == 1140 + RCD


def test_refreshes_are_due_at_fixed_times_and_none_is_lost() -> None:
    pc = channel(hbm__banks__t_refi_ns=100, hbm__banks__t_rfc_ns=40)
    begins = [burst(pc, 0) for _ in range(60)]
    gaps = [later - before for before, later in pairwise(begins)]
    assert sum(gap > BURST for gap in gaps) == int(begins[-1]) // 100


def access(offset: int, nbytes: int, rows: StridedBlock | None = None) -> Access:
    return Access(
        message=(0, 0, 0),
        offset=offset,
        nbytes=nbytes,
        arrived_ps=7,
        tail_ps=7,
        writes=False,
        begun=lambda *_: None,
        rows=rows,
    )


SLICE: Topology = variant()


def test_bursts_of_a_channel_fill_rows_which_lie_on_consecutive_banks() -> None:
    parts = BankedChannels("hbm", SLICE).shares_of(access(256, 4 * 8192))
    assert parts[0] == (7, [(0, 768), (1, 1024), (2, 1024), (3, 1024), (4, 256)])
    assert parts[1] == (7, [(0, 1024), (1, 1024), (2, 1024), (3, 1024)])
    assert BankedChannels("hbm", SLICE).shares_of(access(2048, 300))[2:] == [None] * 6


def test_rows_of_a_matrix_in_one_row_of_a_bank_are_one_part() -> None:
    rows = StridedBlock(128, 2048)
    [first, *others] = BankedChannels("hbm", SLICE).shares_of(access(0, 8 * 128, rows))
    assert first == (7, [(0, 512), (1, 512)])
    assert others == [None] * 7


@given(st.integers(0, 1 << 16), st.integers(1, 1 << 14))
def test_the_parts_of_all_channels_are_all_bytes(offset: int, nbytes: int) -> None:
    parts = BankedChannels("hbm", SLICE).shares_of(access(offset, nbytes))
    assert sum(size for part in parts if part for _, size in part[1]) == nbytes
