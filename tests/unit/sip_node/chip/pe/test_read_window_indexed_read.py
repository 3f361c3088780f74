"""Gathers of the DMA without a kernel: one request, whose rows come from any slice."""

import pytest

from runtime.core.rng import seeded
from tests.support.lone_pe import LonePe

ROW = 512


def gathered(pe: LonePe, rows: list[tuple[int, int]], list_bytes: int = 0) -> list[bytes]:
    """The bytes of rows of `ROW` bytes, given as (slice, number), once the request completes."""
    found: list[bytes] = []
    blocks = [pe.hbm(number * ROW, ROW, pe=owner) for owner, number in rows]
    target = pe.tcm(0, len(rows), ROW)
    pe.dma.gather(blocks, target, list_bytes, None).then(lambda done: found.append(done.value))
    return found


def test_rows_of_two_slices_come_in_the_order_of_the_list() -> None:
    pe, content = LonePe(channels=8), dict[int, bytes]()
    for owner in (0, 1):
        content[owner] = seeded(owner).randbytes(8 * ROW)
        pe.dma.write(pe.tcm(0, 8 * ROW), pe.hbm(0, 8 * ROW, pe=owner), content[owner])
    pe.run()
    rows = [(1, 7), (0, 0), (1, 2), (1, 7), (0, 5)]
    found = gathered(pe, rows)
    pe.run()
    expected = b"".join(content[owner][n * ROW : (n + 1) * ROW] for owner, n in rows)
    assert found == [expected]
    assert pe.pe.tcm.read(pe.tcm(0, len(rows), ROW)) == expected


def test_a_gather_is_one_request_on_one_channel() -> None:
    pe = LonePe(channels=1)
    gathered(pe, [(0, number) for number in range(20)])
    pe.read(0, ROW)
    assert pe.dma.in_flight == 2
    gather, load = pe.run()
    assert (gather.name, gather.nbytes, len(gather.inputs)) == ("gather", 20 * ROW, 20)
    assert load.start_ps == gather.end_ps


@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_passes_the_port_of_the_tcm_before_the_first_descriptor(rows: int) -> None:
    def took_ps(list_bytes: int) -> int:
        pe = LonePe(channels=1)
        gathered(pe, [(0, number) for number in range(rows)], list_bytes)
        [record] = pe.run()
        return record.end_ps

    # 5,120 bytes at 512 GB/s.
    assert took_ps(5_120) - took_ps(0) == 10_000


def test_the_rows_of_a_gather_have_one_turn_together_beside_a_long_read() -> None:
    def ends_ps(*, together: bool) -> int:
        """The last row beside a read whose packets fill the window."""
        pe = LonePe(channels=9, outstanding=4)
        pe.read(0, 64 * 4096)
        for number in range(8):
            if not together:
                pe.read(number * ROW, ROW, pe=1)
        if together:
            gathered(pe, [(1, number) for number in range(8)])
        *_, last, long = pe.run()
        assert long.nbytes == 64 * 4096
        return last.end_ps

    # Each of 8 loads has a turn of its own: their READs leave one after the other. Those of the
    # gather leave in turn with those of the long read, one for one: 7 packets of 20 ns more.
    assert ends_ps(together=True) > ends_ps(together=False) + 6 * 20_000
