"""The shape of a matrix product, by PyTorch's rules for vectors and folded axes."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from runtime.device.memory.stored_tensor import StoredTensor


class MatmulShape(NamedTuple):
    """The sizes of a product: of its result, and of the operands as they are in memory."""

    m: int
    k: int
    n: int
    shape: tuple[int, ...]
    stored_a: tuple[int, int]
    stored_b: tuple[int, int]

    @classmethod
    def of(
        cls, a: StoredTensor, b: StoredTensor, *, transpose_a: bool, transpose_b: bool
    ) -> "MatmulShape":
        """The shape of `a` times `b`, each transposed if so; `RuntimeError` if they differ."""
        axes = len(a.shape), len(b.shape)
        if 0 in axes:
            raise RuntimeError(
                "both arguments to matmul need to be at least 1D, but they are "
                f"{axes[0]}D and {axes[1]}D"
            )
        if axes[1] > 2:
            raise NotImplementedError(
                f"matmul of {a.shape} and {b.shape}: other has at most 2 axes here; multiply the "
                "matrices of a batch one by one"
            )
        for tensor, transposed in ((a, transpose_a), (b, transpose_b)):
            if transposed and len(tensor.shape) != 2:
                raise ValueError(f"a tensor of shape {tensor.shape} is no matrix to transpose")
        stored_a = (prod(a.shape[:-1]), a.shape[-1])
        stored_b = (b.shape[0], 1 if len(b.shape) == 1 else b.shape[1])
        m, k = stored_a[::-1] if transpose_a else stored_a
        depth, n = stored_b[::-1] if transpose_b else stored_b
        if k != depth:
            raise RuntimeError(_mismatch(a.shape, b.shape, (m, k), (depth, n)))
        shape: tuple[int, ...] = ((m,) if transpose_a else a.shape[:-1]) + (
            () if len(b.shape) == 1 else (n,)
        )
        return cls(m=m, k=k, n=n, shape=shape, stored_a=stored_a, stored_b=stored_b)


def _mismatch(
    a: Sequence[int], b: Sequence[int], left: tuple[int, int], right: tuple[int, int]
) -> str:
    if len(b) > 1:
        (m, k), (depth, n) = left, right
        return f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {depth}x{n})"
    if len(a) == 1:
        return (
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the "
            f"same number of elements, but got {a[0]} and {b[0]} elements respectively"
        )
    return f"size mismatch, got input ({left[0]}), mat ({left[0]}x{left[1]}), vec ({b[0]})"
