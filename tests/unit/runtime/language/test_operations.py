"""Arithmetic in float32, against the rule: exact, rounded to float32, then to the type."""

import numpy as np
import pytest

from runtime.core.dtypes import DType, bfloat16, boolean, float16, float32, float64, int32
from runtime.language.inference import infer
from runtime.language.operations import compute
from runtime.language.running import MathOptions
from runtime.language.value import Value

SPECIALS = [0.0, -0.0, np.inf, -np.inf, 1.0, 1e-45, -1e-45, 6e-8, 65504.0, 3.4e38, 1e-38]


def every_kind_of_number(dtype: np.dtype) -> np.ndarray:
    """Random bits, which contain NaNs with payloads, and special values."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = np.random.default_rng(7).integers(0, np.iinfo(unsigned).max, 20_000, unsigned)
    with np.errstate(over="ignore"):
        return np.concatenate([bits.view(dtype), np.array(SPECIALS).astype(dtype)])


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_one_rounding_of_float32_has_the_bits_of_the_exact_result(name: str, dtype) -> None:
    a = every_kind_of_number(dtype.numpy)
    for b in (a[::-1].copy(), np.roll(a, 1), a):
        with np.errstate(all="ignore"):
            function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
            exact = function(a.astype(np.float64), b.astype(np.float64))
            expected = exact.astype(np.float32).astype(dtype.numpy)
        assert compute(name, (a, b), dtype).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "name", ["add", "lt", "maximum", "cumsum", "argmax", "softmax", "cast", "bitcast"]
)
def test_a_result_is_row_major_also_where_its_operands_are_not(name: str) -> None:
    matrix = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    operands = [matrix.swapaxes(1, 2)] * (2 if name in ("add", "lt", "maximum") else 1)
    dtype = {"lt": boolean, "argmax": int32}.get(name, float32)
    found = compute(name, operands, dtype, axis=0)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(
        found, compute(name, [np.array(each, order="C") for each in operands], dtype, axis=0)
    )


def test_a_bitcast_keeps_the_bits() -> None:
    x = np.array([0.0, -0.0, 1.0, np.inf], np.float32)
    bits = compute("bitcast", (x,), int32)
    assert bits.tolist() == [0, -(2**31), 0x3F800000, 0x7F800000]
    assert compute("bitcast", (bits,), float32).tobytes() == x.tobytes()


@pytest.mark.parametrize(("dtype", "sizes"), [(float64, "4 and 8"), (boolean, "4 and 1")])
def test_a_bitcast_is_between_numbers_of_one_size(dtype: DType, sizes: str) -> None:
    with pytest.raises(TypeError, match=f"bitcast of f32 to {dtype.name}: .* {sizes} bytes"):
        infer("bitcast", [Value((4,), float32, None)], MathOptions(dtype=dtype))
