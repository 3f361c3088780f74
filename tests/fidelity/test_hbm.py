"""HBM: bursts striped over pseudo channels, reads and writes in one queue, one slice a PE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import DPPolicy, torch
from runtime.language import tl
from runtime.language.value import Pointer
from runtime.model.placement import ONE_PE
from runtime.model.topology import Topology
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.hbm import PseudoChannels
from tests.support.topologies import variant, variant_text
from tests.support.world import simulate

pytestmark = pytest.mark.fidelity

READS, WRITES = False, True
BURST, CHANNELS = 256, 8
SLICE_GBS = 204.8
"""8 pseudo channels of 32 GB/s at an efficiency of 0.8."""
BURST_PS = 10_000
"""256 B on one channel: 256 / (32 * 0.8) = 10 ns."""


TOPOLOGY = variant()


class Slice(PseudoChannels):
    """A slice whose accesses reserve their channels at once."""

    def access(
        self, offset: int, nbytes: int, head_ps: int, tail_ps: int, writes: bool
    ) -> tuple[int, int]:
        """Begin of an access on the last of its channels, and the time of its last byte."""
        return self.reserve(self.shares(offset, nbytes), head_ps, tail_ps, writes)[1:]


def slice_of(topology: Topology = TOPOLOGY) -> Slice:
    return Slice("hbm", topology)


def test_consecutive_bursts_reach_the_full_rate_of_the_slice() -> None:
    hbm = slice_of()
    done_ps = max(hbm.access(start, BURST, 0, 0, READS)[1] for start in range(0, 1 << 20, BURST))
    assert done_ps == (1 << 20) * 1000 / SLICE_GBS


def test_one_large_access_takes_as_long_as_its_bursts_one_by_one() -> None:
    assert slice_of().access(0, 1 << 20, 0, 0, READS) == (0, (1 << 20) * 1000 / SLICE_GBS)


def test_a_stride_within_one_channel_has_an_eighth_of_the_rate() -> None:
    hbm = slice_of()
    bursts = 64
    done_ps = max(
        hbm.access(index * BURST * CHANNELS, BURST, 0, 0, READS)[1] for index in range(bursts)
    )
    assert done_ps == bursts * BURST * 1000 / (SLICE_GBS / 8)


@pytest.mark.parametrize(("stride", "share"), [(1, 1), (2, 1 / 2), (4, 1 / 4), (3, 1), (5, 1)])
def test_a_stride_uses_the_channels_that_it_reaches(stride: int, share: float) -> None:
    hbm, bursts = slice_of(), 64
    done_ps = max(
        hbm.access(index * BURST * stride, BURST, 0, 0, READS)[1] for index in range(bursts)
    )
    assert done_ps == bursts * BURST * 1000 / (SLICE_GBS * share)


@given(
    st.integers(0, 1 << 20),
    st.integers(1, 50),
    st.integers(1, 700),
    st.integers(0, 5000),
    st.data(),
)
def test_rows_occupy_each_channel_for_their_bytes_on_it(
    offset: int, count: int, row_bytes: int, gap: int, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, count * row_bytes - 1))
    nbytes = data.draw(st.integers(1, count * row_bytes - begin))
    rows, columns = np.divmod(np.arange(begin, begin + nbytes), row_bytes)
    channels = (offset + rows * (row_bytes + gap) + columns) // BURST % CHANNELS
    expected = np.bincount(channels, minlength=CHANNELS).tolist()
    assert (
        list(
            slice_of().shares_of_rows(
                offset, StridedBlock(row_bytes, row_bytes + gap), begin, nbytes
            )
        )
        == expected
    )


@pytest.mark.parametrize(
    ("pitch", "busiest_bytes"),
    [(2048, 4096), (1024, 2048), (512, 1024), (256, 512), (2048 + 256, 512)],
)
def test_rows_take_as_long_as_their_busiest_channel(pitch: int, busiest_bytes: int) -> None:
    # 32 rows of 128 B. At a pitch of 2048 B = 8 x 256 B all lie on one channel, at half that pitch
    # on two channels, and so on.
    hbm = slice_of()
    shares = hbm.shares_of_rows(0, StridedBlock(128, pitch), 0, 32 * 128)
    end_ps = 5_000 + busiest_bytes * 1000 / (SLICE_GBS / CHANNELS)
    assert hbm.reserve(shares, 5_000, 5_000, READS) == (5_000, 5_000, end_ps)


def test_rows_and_other_accesses_queue_for_the_channels_that_they_share() -> None:
    hbm = slice_of()
    hbm.reserve(hbm.shares_of_rows(0, StridedBlock(128, 2048), 0, 4096), 0, 0, READS)
    assert hbm.access(BURST, BURST, 0, 0, READS) == (0, BURST_PS)
    assert hbm.access(0, BURST, 0, 0, WRITES) == (160_000, 160_000 + BURST_PS)


@given(st.integers(0, 1 << 20), st.integers(1, 1 << 16))
def test_the_shares_of_the_channels_are_the_bytes_whose_burst_they_hold(
    offset: int, nbytes: int
) -> None:
    expected = [0] * CHANNELS
    first, last = offset // BURST, (offset + nbytes - 1) // BURST
    for burst in range(first, last + 1):
        inside = min(offset + nbytes, (burst + 1) * BURST) - max(offset, burst * BURST)
        expected[burst % CHANNELS] += inside
    assert list(slice_of().shares(offset, nbytes)) == expected


def test_reads_and_writes_share_a_channel() -> None:
    hbm = slice_of()
    assert hbm.access(0, BURST, 0, 0, READS) == (0, BURST_PS)
    assert hbm.access(0, BURST, 0, 0, WRITES) == (BURST_PS, 2 * BURST_PS)


def test_accesses_to_different_channels_overlap() -> None:
    hbm = slice_of()
    assert (
        hbm.access(0, BURST, 0, 0, READS) == hbm.access(BURST, BURST, 0, 0, WRITES) == (0, BURST_PS)
    )


def test_a_change_of_direction_costs_the_penalty_and_no_change_costs_nothing() -> None:
    hbm = slice_of(variant(cube__hbm_ctrl__switch_penalty_ns=7.0))
    directions = [READS, READS, WRITES, WRITES, READS]
    ends = [hbm.access(0, BURST, 0, 0, writes)[1] for writes in directions]
    turns = [0, 0, 1, 1, 2]
    assert ends == [BURST_PS * (index + 1) + 7_000 * turn for index, turn in enumerate(turns)]


def test_a_change_of_direction_is_hidden_while_the_channel_is_idle() -> None:
    hbm = slice_of(variant(cube__hbm_ctrl__switch_penalty_ns=7.0))
    hbm.access(0, BURST, 0, 0, READS)
    assert hbm.access(0, 2 * BURST, 20_000, 20_000, WRITES) == (20_000, 20_000 + BURST_PS)
    assert hbm.access(0, 2 * BURST, 30_000, 30_000, READS) == (37_000, 37_000 + BURST_PS)


def test_data_that_arrives_slowly_occupies_the_channel_until_its_last_byte() -> None:
    hbm = slice_of()
    assert hbm.access(0, BURST, 0, 25_000, WRITES) == (0, 25_000)
    assert hbm.access(0, BURST, 0, 0, READS) == (25_000, 25_000 + BURST_PS)


EIGHT_PES = variant_text(sip__cube_mesh={"w": 1, "h": 1})
PART = 512 << 10


def load_gbs(*, one_slice: bool) -> float:
    """Total bandwidth of the PEs of a cube, loading `PART` bytes each of own slices or one."""

    def kernel(shared: Pointer, spread: Pointer) -> None:
        tl.load(shared if one_slice else spread + tl.program_id(0) * PART, PART)

    def program(rank: int) -> None:
        shared = torch.empty(PART, dtype=torch.int8, dp=ONE_PE)
        spread = torch.empty(8, PART, dtype=torch.int8, dp=DPPolicy(pe="row_wise"))
        torch.launch("load", kernel, shared, spread)
        torch.ahbm.synchronize()

    loads = [
        record
        for _, record in simulate(program, 1, topology=EIGHT_PES, data=False).of("pe_dma", "load")
    ]
    assert len(loads) == 8
    span_ps = max(load.end_ps for load in loads) - min(load.start_ps for load in loads)
    return 8 * PART * 1000 / span_ps


def test_eight_pes_on_their_own_slices_have_eight_times_the_rate_of_one() -> None:
    assert load_gbs(one_slice=False) == pytest.approx(8 * SLICE_GBS, rel=0.03)


def test_eight_pes_on_one_slice_have_the_rate_of_one_in_total() -> None:
    assert load_gbs(one_slice=True) == pytest.approx(SLICE_GBS, rel=0.03)
