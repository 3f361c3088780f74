"""The roofline of a kernel on one PE: three least times, the largest of which binds."""

from types import SimpleNamespace

import pytest

from kernbench.oracle.theory.engines.pe_roofline import PeRoofline

# 2 x 4096 operations a nanosecond.
DEVICE = SimpleNamespace(
    hbm_gbs_per_pe=204.8,
    peak_gemm_tflops_per_pe=8.192,
    vector_lanes=128,
    vector_clock_ghz=2.0,
    vector_cycles={"add": 1, "exp": 8},
)


def test_each_engine_has_its_least_time():
    roofline = PeRoofline.of(
        DEVICE, macs=4096 * 10, hbm_bytes=2048, vectors={"add": 256, "exp": 129}
    )
    assert roofline.gemm_ns == pytest.approx(10)
    assert roofline.hbm_ns == pytest.approx(10)
    # Two vectors of one cycle, and a full one and one of a single element of eight, at 2 GHz.
    assert roofline.vector_ns == (2 + 16) / 2


@pytest.mark.parametrize(
    ("roofline", "limit"),
    [
        (PeRoofline(gemm_ns=3.0, hbm_ns=2.0, vector_ns=1.0), "GEMM engine"),
        (PeRoofline(gemm_ns=1.0, hbm_ns=3.0, vector_ns=2.0), "HBM"),
        (PeRoofline(gemm_ns=1.0, hbm_ns=2.0, vector_ns=3.0), "vector engine"),
    ],
)
def test_the_largest_time_is_the_bound_and_names_its_engine(roofline: PeRoofline, limit: str):
    assert (roofline.bound_ns, roofline.limit) == (3.0, limit)
    assert roofline.beside(4.0) == f"4.0 ns, bound 3.0 ns by the {limit}: 75.0%"


def test_a_function_that_the_engine_lacks_is_refused_with_those_that_it_has():
    with pytest.raises(ValueError, match="no function 'cosh'; it has add, exp"):
        PeRoofline.of(DEVICE, vectors={"cosh": 1})
