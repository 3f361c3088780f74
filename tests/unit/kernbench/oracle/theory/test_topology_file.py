from fractions import Fraction

import pytest

from kernbench.oracle.theory import bandwidths
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import variant_text


def test_a_copy_with_other_values_leaves_the_file_as_it_was() -> None:
    file = TopologyFile.of(variant_text())
    before = file.text
    assert file.with_values({"hbm.num_pcs": 4, "cube.noc.rows": 3})["hbm.num_pcs"] == 4
    assert file.on_a_ring(5)["system.sips.count"] == 5
    assert file.text == before


def test_numbers_are_the_decimals_of_the_file_and_literals_stand_for_themselves() -> None:
    file = TopologyFile.of(variant_text(ucie__overhead_ns=0.1))
    assert file.number("ucie.overhead_ns") == Fraction(1, 10)
    assert file.ps("ucie.overhead_ns") == 100
    assert file.number("2.5") == Fraction(5, 2)


def test_a_slice_has_the_bandwidth_of_its_channels_times_their_efficiency() -> None:
    # 8 x 32 GB/s x 0.8; as floats, the product is not exactly 204.8.
    assert bandwidths.slice_gbs(TopologyFile.of(variant_text())) == Fraction("204.8")


@pytest.mark.parametrize(("tcm_gbs", "expected_gbs"), [(512.0, "204.8"), (100.0, "100")])
def test_a_narrow_tcm_port_limits_the_own_memory(tcm_gbs: float, expected_gbs: str) -> None:
    file = TopologyFile.of(variant_text(pe__tcm__bw_gbs=tcm_gbs))
    assert bandwidths.own_memory_gbs(file) == Fraction(expected_gbs)


def test_the_peak_is_that_of_the_model_of_the_engine() -> None:
    gemm = {"pe.gemm.rows": 24, "pe.gemm.cols": 12, "pe.gemm.macs_per_cycle": 1000}
    file = TopologyFile.of(variant_text()).with_values(gemm)
    macs, array = (file.with_values({"pe.gemm.model": model}) for model in ("macs", "systolic_os"))
    assert bandwidths.peak_macs_per_cycle(macs) == 1000
    assert bandwidths.peak_macs_per_cycle(array) == 24 * 12


def test_a_key_that_is_left_out_has_its_default():
    file = TopologyFile.of("host: {overhead_ns: 0.5, copy_overhead_ns: null}")
    assert file.ps("host.overhead_ns", 3) == 500
    assert file.ps("host.launch_overhead_ns", 3) == file.ps("host.copy_overhead_ns", 3) == 3000
    assert file.get("pe.dma.channels", 8) == 8
