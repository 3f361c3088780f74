"""The tables of how far streaming hides latency."""

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.tables.streams import product_ps, read_gbs
from tests.support.topologies import default_text, variant_text


@pytest.mark.slow
def test_buffers_hide_latency_and_few_do_not() -> None:
    file = TopologyFile.of(default_text())
    without_ps, few_ps, many_ps = (
        product_ps(file, latency_ns, buffers)
        for latency_ns, buffers in ((0, 2), (100, 2), (100, 8))
    )
    assert few_ps > 1.5 * without_ps
    assert many_ps < 1.02 * without_ps


@pytest.mark.parametrize("outstanding", [2, 16])
def test_the_bandwidth_of_a_read_is_that_of_the_closed_form(outstanding: int) -> None:
    text = variant_text(sip__cube_mesh={"w": 2, "h": 1}, pe__dma__outstanding=outstanding)
    measured, expected = read_gbs(text, "dma-cube-worst")
    assert measured == pytest.approx(expected, rel=1e-9)
