"""Transfers on a small machine, simulated: every element right, and the same times without data."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as replace_struct

from kernbench.studies.kv_transfer import points
from kernbench.studies.kv_transfer.points import KvPoint
from kernbench.studies.kv_transfer.rows import KvRow
from kernbench.studies.kv_transfer.study import (
    KvOutcome,
    KvTimes,
    KvTransferStudy,
    layer_elements,
    made_elements,
    wrong_elements,
)
from tests.support.kv_points import small_point


def _simulated(point: KvPoint, *, data: bool, monkeypatch: pytest.MonkeyPatch) -> KvRow:
    monkeypatch.setattr(points, "CHECKED_BYTES", 1 << 23 if data else 0)
    return KvTransferStudy().measure(point)


@pytest.mark.parametrize(("prefill", "decode"), [(1, 2), (2, 1)])
def test_every_rank_gets_its_heads_in_the_same_time_with_and_without_data(
    prefill: int, decode: int, monkeypatch: pytest.MonkeyPatch
):
    point = small_point(prefill, decode, layers=3)
    row, other = (_simulated(point, data=data, monkeypatch=monkeypatch) for data in (True, False))
    assert (row.wrong, other.wrong) == (0, None)
    assert row.faults == []
    assert replace_struct(row, wrong=None) == other
    # The computation of a layer is short: overlap saves it, and the link is busy all the time.
    assert row.added_beside_ps < row.added_after_ps
    assert row.arrivals_ps == tuple(sorted(row.arrivals_ps))


def _slow(point: KvPoint) -> KvPoint:
    """The point with a layer of 41 million weights."""
    return replace(point, shape=replace(point.shape, hidden=2048, inner=1024))


def test_a_long_computation_hides_all_layers_but_the_last(monkeypatch: pytest.MonkeyPatch):
    short, long = (
        _simulated(
            _slow(small_point(1, 1, layers=layers)),
            data=False,
            monkeypatch=monkeypatch,
        )
        for layers in (1, 3)
    )
    assert short.bounds.bytes_ps < long.layer_ps
    # The launches of the layers, which the row of one layer has less of, are in both.
    assert long.added_beside_ps == pytest.approx(short.added_beside_ps, rel=0.02)
    assert long.added_after_ps > 2 * short.added_after_ps


def test_heads_of_another_rank_and_of_another_layer_are_wrong():
    point = small_point(1, 2, layers=1)
    made = made_elements(point)

    def outcome(head: int, layer: int) -> KvOutcome:
        moved = made[head : head + 4]
        after, beside = (
            KvTimes(0, (), (0,), {(0, 0): layer_elements(moved, number)}) for number in (layer, 1)
        )
        return KvOutcome(after, beside)

    sender = KvOutcome(*[KvTimes(0, (0,), (), {})] * 2)
    assert wrong_elements(point, made, [sender, outcome(0, 0), outcome(4, 0)]) == 0
    assert wrong_elements(point, made, [sender, outcome(0, 1), outcome(4, 0)]) == made[:4].size
    swapped = 2 * 2 * int(np.count_nonzero(made[:4] != made[4:]))
    assert wrong_elements(point, made, [sender, outcome(4, 0), outcome(0, 0)]) == swapped
