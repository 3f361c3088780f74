"""Peak rates of a PE: what a program reads of its device are those of the closed forms."""

from fractions import Fraction
from random import Random

import pytest
import yaml

from kernbench.oracle.theory.bandwidths import gemm_bound_ps, own_read_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.device.rank.properties import _hbm_gbs, _peak_gemm_tflops
from runtime.model.topology import parse_topology
from tests.support.random_topologies import random_content


@pytest.mark.parametrize("seed", range(12))
def test_the_device_properties_of_random_machines_are_the_peak_rates(seed: int) -> None:
    text = yaml.safe_dump(random_content(Random(seed)))
    file, topology = TopologyFile.of(text), parse_topology(text, "topology")
    assert _hbm_gbs(topology) == float(own_read_gbs(file))
    # Two operations per multiply-add; 1 TFLOPS is one operation a picosecond.
    assert _peak_gemm_tflops(topology) == float(Fraction(2) / gemm_bound_ps(file, 1))
