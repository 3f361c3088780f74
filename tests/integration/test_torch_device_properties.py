import re
from typing import Any

import pytest

from runtime import torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

SMALL = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__corners": ["NW"]}


def properties(sips: int = 1, **changes: Any) -> torch.ahbm.DeviceProperties:
    topology = variant_text(**SMALL, **changes)
    return simulate(
        lambda rank: torch.ahbm.get_device_properties(), sips, topology=topology
    ).returned[0]


def test_the_properties_are_those_of_the_topology_file():
    """Defaults: 8 channels of 32 GB/s at 80 %, 4096 multiplications at 1 GHz, 6 GiB, 16, 1 MiB."""
    device = properties()
    assert (device.name, device.cubes, device.pes_per_cube, device.pe_count) == ("ahbm", 1, 2, 2)
    assert (device.hbm_gbs_per_pe, device.peak_gemm_tflops_per_pe, device.gemm_tile) == (
        204.8,
        8.192,
        (32, 64, 32),
    )
    assert (device.hbm_bytes_per_pe, device.total_memory_bytes) == (6 << 30, 12 << 30)
    assert (device.tcm_bytes_per_pe, device.kernel_scratch_bytes_per_pe) == (16 << 20, 1 << 20)


def test_the_narrowest_link_limits_the_bandwidth_of_a_slice():
    assert properties(xbar__to_hbm_bw_gbs=100).hbm_gbs_per_pe == 100
    assert properties(pe__tcm__bw_gbs=50).hbm_gbs_per_pe == 50


def test_the_peak_of_a_systolic_array_is_one_multiplication_a_cell_and_cycle():
    assert (
        properties(pe__gemm__model="systolic_os", pe__gemm__clock_ghz=1.5).peak_gemm_tflops_per_pe
        == 2 * 32 * 32 * 1.5 / 1000
    )


def test_the_properties_of_a_sip_that_does_not_exist_are_refused():
    def program(rank: int) -> str:
        assert torch.ahbm.get_device_properties(1) == torch.ahbm.get_device_properties()
        with pytest.raises(RuntimeError) as raised:
            torch.ahbm.get_device_properties(2)
        return str(raised.value)

    said = simulate(program, 2, topology=variant_text(**SMALL)).returned[0]
    assert re.fullmatch("invalid device ordinal 2: there are 2 SIPs, from 0 on", said)
