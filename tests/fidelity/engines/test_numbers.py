"""The exact results with which `validate` compares those of `tl`."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.dtypes import DType, bfloat16, float8e4nv, float8e5, float16, float32, int8, int32
from runtime.core.rng import seeded
from tests.fidelity.engines.numbers import NumericCase, cases, ulp, wrapped
from tests.support.kernels import NARROW


@pytest.fixture(scope="module")
def everything() -> list[NumericCase]:
    return cases(seeded(1), 64)


def the(everything: list[NumericCase], dtype: DType, name: str) -> NumericCase:
    return next(each for each in everything if each.dtype == dtype and each.name == name)


@pytest.mark.parametrize("dtype", [float16, float32])
@settings(deadline=None)
@given(number=st.floats(2.0**-14, 60_000.0, width=16))
def test_a_unit_in_the_last_place_is_numpys_spacing(dtype: DType, number: float) -> None:
    assert ulp(dtype, number) == float(np.spacing(np.array(number, dtype.numpy)))
    assert ulp(dtype, -number) == ulp(dtype, number)


@pytest.mark.parametrize(
    ("number", "unit"), [(1.0, 2.0**-7), (1.99, 2.0**-7), (2.0, 2.0**-6), (0.0, 2.0**-133)]
)
def test_a_unit_of_bfloat16_is_that_of_its_seven_bits(number: float, unit: float) -> None:
    assert ulp(bfloat16, number) == unit


@settings(deadline=None)
@given(st.integers(-(10**12), 10**12))
def test_integers_wrap_as_twos_complement(number: int) -> None:
    assert wrapped(number, int8) == int(np.array(number).astype(np.int8))
    assert wrapped(number, int32) == int(np.array(number).astype(np.int32))


def test_every_type_has_its_operations(everything: list[NumericCase]) -> None:
    families = {
        dtype.name: {each.family for each in everything if each.dtype == dtype}
        for dtype in (*NARROW, float8e4nv, float8e5)
    }
    whole = {"elementwise", "reduction", "scan", "position"}
    every = {*whole, "softmax", "gemm"}
    assert families == {
        "f16": every,
        "bf16": every,
        "f32": every,
        "f8e4m3": every,
        "f8e5m2": every,
        "i8": {*whole, "gemm"},
        "i32": whole,
    }


@pytest.mark.parametrize(
    "name", ["gelu", "sum axis 0", "softmax", "max axis 1", "cumsum axis 0", "argmin axis 0"]
)
def test_exact_results_agree_with_numpy_in_float64(
    everything: list[NumericCase], name: str
) -> None:
    each = the(everything, float32, name)
    x = each.operands[0].astype(np.float64)
    exponential = np.exp(x)
    expected = {
        "gelu": 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "sum axis 0": x.sum(axis=0),
        "softmax": exponential / exponential.sum(axis=-1, keepdims=True),
        "max axis 1": x.max(axis=1),
        "cumsum axis 0": x.cumsum(axis=0),
        "argmin axis 0": x.argmin(axis=0),
    }[name]
    np.testing.assert_allclose(each.exact, expected.reshape(-1), rtol=1e-11)


@pytest.mark.parametrize("dtype", [float16, int8])
def test_exact_products_agree_with_numpy(everything: list[NumericCase], dtype: DType) -> None:
    each = the(everything, dtype, "dot")
    a, b = (operand.astype(np.float64) for operand in each.operands)
    np.testing.assert_allclose(each.exact, (a @ b).reshape(-1), rtol=1e-12)
    np.testing.assert_allclose(
        each.slack,
        [] if dtype == int8 else 3 * 2.0**-24 * (abs(a) @ abs(b)).reshape(-1),
        rtol=1e-12,
    )
