"""Tensors of 8-bit floating point: stored, copied and converted, and computed with in kernels."""

import ml_dtypes
import numpy as np
import pytest

from kernbench import tl, torch
from tests.support.world import simulate

EIGHT = {torch.float8_e4m3fn: (ml_dtypes.float8_e4m3fn, 448.0)} | {
    torch.float8_e5m2: (ml_dtypes.float8_e5m2, 57344.0)
}


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
def test_tensors_are_written_read_and_converted_with_saturation(dtype: tl.DType) -> None:
    numpy, most = EIGHT[dtype]
    x = np.array([1.5, -1e9, np.inf, 0.3, np.nan], np.float32)

    def program(_rank: int) -> list[np.ndarray]:
        eight = torch.from_numpy(x).to(dtype)
        assert (eight.dtype, eight.itemsize, eight.nbytes) == (dtype, 1, 5)
        again = torch.from_numpy(eight.numpy())
        return [eight.numpy(), again.to(torch.float16).numpy(), torch.zeros(3, dtype=dtype).numpy()]

    eight, wide, zeros = simulate(program, 1).returned[0]
    assert (eight.dtype, zeros.dtype) == (np.dtype(numpy), np.dtype(numpy))
    expected = np.array([1.5, -most, most, float(numpy(0.3)), np.nan])
    np.testing.assert_array_equal(wide, expected.astype(np.float16))


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
def test_what_pytorch_does_not_compute_in_8_bits_is_refused(dtype: tl.DType) -> None:
    name = dtype.torch_name.capitalize()

    def program(_rank: int) -> None:
        x = torch.zeros(3, dtype=dtype)
        for function, call in (
            ("add", lambda: x + x),
            ("mul", lambda: 2 * x),
            ("eq", lambda: x == 1),
            ("exp", lambda: torch.exp(x)),
            ("sum", lambda: torch.sum(x)),
            ("max", lambda: torch.amax(x)),
        ):
            with pytest.raises(NotImplementedError) as raised:
                call()
            advice = "convert with x.to(torch.float32), or compute in a kernel"
            assert str(raised.value) == f"\"{function}\" not implemented for '{name}': {advice}"
        with pytest.raises(RuntimeError, match=r"without overflow$"):
            torch.full((2,), 1e6, dtype=dtype)
        with pytest.raises(RuntimeError, match=r"^\"rand\" not implemented .*: draw float32 and"):
            torch.rand(2, dtype=dtype)

    simulate(program, 1)
