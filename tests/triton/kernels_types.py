"""Kernels with block pointers, and with types that the vector engine lacks."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


@triton.jit
def block_pointer_kernel(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_ptr = tl.make_block_ptr(
        base=A, shape=(M, K), strides=(K, 1), offsets=(m, 0), block_shape=(BM, BK), order=(1, 0)
    )
    b_ptr = tl.make_block_ptr(B, (K, N), (N, 1), (0, n), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_ptr, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_ptr, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc)
        a_ptr = tl.advance(a_ptr, (0, BK))
        b_ptr = b_ptr.advance((BK, 0))
    c_ptr = tl.make_block_ptr(C, (M, N), (N, 1), (m, n), (BM, BN), (1, 0))
    tl.store(c_ptr, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@case("matmul, block pointers", "products")
def block_pointers(run: Launches):
    a, b = run.normal(60, 72, dtype=np.float16), run.normal(72, 50, dtype=np.float16)
    out = run.empty(60, 50, dtype=np.float16)
    run.macs += 60 * 72 * 50
    run(block_pointer_kernel, (2, 2), run.put(a), run.put(b), out, 60, 50, 72, BM=32, BN=32, BK=32)
    return [(out, a.astype(np.float64) @ b.astype(np.float64), 2e-3)]


@triton.jit
def quotients_kernel(A, B, Q, R, S, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(A + offs), tl.load(B + offs)
    tl.store(Q + offs, a // b)
    tl.store(R + offs, a % b)
    tl.store(S + offs, (a >> 5) + (a >> 40) + a // 7)


@case("quotients of 64 bits", "types")
def quotients(run: Launches):
    wide = np.iinfo(np.int64)
    a = run.draw.integers(wide.min, wide.max, 256, dtype=np.int64)
    b = run.draw.integers(wide.min, wide.max, 256, dtype=np.int64) >> run.draw.integers(0, 62, 256)
    a[:6], b[:6] = [7, -7, 7, -7, wide.max, -1], [2, 2, -2, -2, wide.max, wide.max]
    b[b == 0] = 3
    q, r, s = (run.empty(256, dtype=np.int64) for _ in range(3))
    run(quotients_kernel, (2,), run.put(a), run.put(b), q, r, s, BLOCK=128)
    # Towards zero, as Triton divides.
    exact = [divmod(abs(int(x)), abs(int(y))) for x, y in zip(a, b, strict=True)]
    signs = np.sign(a) * np.sign(b)
    quotient = np.array([each for each, _ in exact], np.int64) * signs
    rest = np.array([each for _, each in exact], np.int64) * np.sign(a)
    seventh = np.array([abs(int(x)) // 7 for x in a], np.int64) * np.sign(a)
    shifted = (a >> 5) + (a >> 40) + seventh
    # Of equal integers: a difference in 64 bits would be rounded.
    return [(_Exact(x, y), np.zeros(256), 0) for x, y in ((q, quotient), (r, rest), (s, shifted))]


class _Exact:
    """The number 1 where two integers differ."""

    def __init__(self, result: object, expected: np.ndarray) -> None:
        self._result, self._expected = result, expected

    def numpy(self) -> np.ndarray:
        return (self._result.numpy() != self._expected).astype(np.float64)


@triton.jit
def inverse_root_kernel(X, Y, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + offs)
    bits = x.to(tl.int32, bitcast=True)
    y = (0x5F3759DF - (bits >> 1)).to(tl.float32, bitcast=True)
    for _ in tl.static_range(3):
        y = y * (1.5 - 0.5 * x * y * y)
    sign = x.to(tl.uint32, bitcast=True) >> 31
    tl.store(Y + offs, tl.where(sign == 0, y, 0.0))


@case("bits of numbers: an inverse root", "types")
def inverse_root(run: Launches):
    x, out = np.abs(run.normal(256)) + np.float32(0.1), run.empty(256)
    x[7] = -1
    run(inverse_root_kernel, (2,), run.put(x), out, BLOCK=128)
    return [(out, np.where(x > 0, 1 / np.sqrt(np.abs(x.astype(np.float64))), 0), 1e-5)]


@triton.jit
def hash_kernel(X, Y, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + offs).to(tl.uint32)
    for _ in tl.static_range(ROUNDS):
        x = (x ^ (x >> 16)) * 0x45D9F3B
        x = (x << 3) ^ (x // 10) ^ (x % 1000)
    low = x.to(tl.uint16)
    tl.store(Y + offs, low.to(tl.int32) - x.to(tl.int16).to(tl.int32) + (x >> 16).to(tl.int32))


@case("unsigned integers: a hash", "types")
def hashed(run: Launches):
    x = run.draw.integers(0, 2**31, 256).astype(np.int32)
    out = run.empty(256, dtype=np.int32)
    run(hash_kernel, (2,), run.put(x), out, ROUNDS=3, BLOCK=128)
    y = x.astype(np.uint32)
    for _ in range(3):
        y = (y ^ (y >> 16)) * np.uint32(0x45D9F3B)
        y = (y << 3) ^ (y // 10) ^ (y % 1000)
    low = y.astype(np.uint16)
    expected = low.astype(np.int32) - low.view(np.int16).astype(np.int32)
    return [(out, expected + (y >> 16).astype(np.int32), 0)]


@triton.jit
def flip_kernel(X, Y, Z, M: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(X + offs)
    tl.store(Y + offs, tl.flip(x, 1))
    tl.store(Z + offs, tl.flip(x.to(tl.float16), 0).to(tl.float32))


@case("flip", "shapes")
def flipped(run: Launches):
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    y, z = run.empty(8, 16), run.empty(8, 16)
    run(flip_kernel, (1,), run.put(x), y, z, M=8, N=16)
    return [(y, x[:, ::-1], 0), (z, x[::-1], 0)]
