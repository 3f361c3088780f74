"""Ranks that arrive far apart meet, and the first launch on mapped tensors maps no page."""

import numpy as np

from kernbench import torch
from kernbench.studies.preparation import map_tensors, meet
from runtime.language import tl
from tests.support.kv_points import TWO_PES
from tests.support.world import simulate


def _first_element(x: tl.Pointer) -> None:
    tl.load(x, 1)


def test_ranks_leave_a_meeting_together():
    def main(rank: int) -> tuple[int, int]:
        torch.ahbm.set_device(rank)
        torch.distributed.init_process_group("ahbm")
        if rank == 1:
            torch.from_numpy(np.zeros(1 << 20, np.float32))
            torch.ahbm.synchronize()
        arrived = torch.ahbm.elapsed_ps()
        meet()
        return arrived, torch.ahbm.elapsed_ps()

    returned = simulate(main, 2, topology=TWO_PES.on_a_ring(2).text).returned
    (first, first_met), (last, last_met) = returned[0], returned[1]
    # 4 MiB pass the link from the host, 64 GB/s.
    assert last - first > 65_000_000
    assert abs(last_met - first_met) < 1_000_000 < first_met - first


def _time_of_a_launch(*, is_mapped: bool) -> int:
    def main(rank: int) -> int:
        torch.ahbm.set_device(rank)
        x = torch.empty(256)
        if is_mapped:
            map_tensors(x)
        torch.ahbm.synchronize()
        began = torch.ahbm.elapsed_ps()
        torch.launch("first element", _first_element, x)
        torch.ahbm.synchronize()
        return torch.ahbm.elapsed_ps() - began

    return simulate(main, 1, topology=TWO_PES.on_a_ring(1).text).returned[0]


def test_a_launch_on_mapped_tensors_does_not_wait_for_pages():
    assert _time_of_a_launch(is_mapped=True) < _time_of_a_launch(is_mapped=False)
