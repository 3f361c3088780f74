"""Kernels of the tutorials of Triton, written for these tests."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@case("vector add", "tutorial 01")
def vector_add(run: Launches):
    n = 9_843
    x, y, out = run.normal(n), run.normal(n), run.empty(n)
    run(add_kernel, (triton.cdiv(n, 1024),), run.put(x), run.put(y), out, n, BLOCK=1024)
    return [(out, x + y, 0)]


@triton.jit
def softmax_kernel(
    output_ptr,
    input_ptr,
    input_row_stride,
    output_row_stride,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = input_ptr + row_idx * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        input_ptrs = row_start_ptr + col_offsets
        mask = col_offsets < n_cols
        row = tl.load(input_ptrs, mask=mask, other=-float("inf"))
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        softmax_output = numerator / denominator
        output_row_start_ptr = output_ptr + row_idx * output_row_stride
        output_ptrs = output_row_start_ptr + col_offsets
        tl.store(output_ptrs, softmax_output, mask=mask)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float16)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def layer_norm_fwd(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd
        y = x_hat * w + b
        tl.store(Y + cols, y, mask=mask)


@case("fused softmax", "tutorial 02")
def softmax(run: Launches):
    x, out = run.normal(32, 781), run.empty(32, 781)
    run(softmax_kernel, (4,), out, run.put(x), 781, 781, 32, 781, BLOCK_SIZE=1024, num_stages=4)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return [(out, e / e.sum(1, keepdims=True), 1e-6)]


def product(
    run: Launches, m: int, n: int, k: int, *, stages: int = 3, activation: str = "", block: int = 64
):
    a, b = run.normal(m, k, dtype=np.float16), run.normal(k, n, dtype=np.float16)
    out = run.empty(m, n, dtype=np.float16)
    run.macs += m * n * k
    run(
        matmul_kernel,
        lambda meta: (triton.cdiv(m, meta["BLOCK_SIZE_M"]) * triton.cdiv(n, meta["BLOCK_SIZE_N"]),),
        *(run.put(a), run.put(b), out, m, n, k, k, 1, n, 1, n, 1),
        BLOCK_SIZE_M=block,
        BLOCK_SIZE_N=block,
        BLOCK_SIZE_K=64,
        GROUP_SIZE_M=8,
        ACTIVATION=activation,
        num_stages=stages,
    )
    exact = a.astype(np.float64) @ b.astype(np.float64)
    if activation:
        exact = np.where(exact >= 0, exact, 0.01 * exact)
    return [(out, exact, 2e-3)]


@case("matmul, leaky ReLU", "tutorial 03")
def matmul(run: Launches):
    return product(run, 128, 128, 128, activation="leaky_relu")


@case("matmul, ragged", "tutorial 03")
def ragged_matmul(run: Launches):
    return product(run, 100, 75, 90)


@triton.jit
def dropout_kernel(x_ptr, keep_ptr, out_ptr, n, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.load(keep_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(keep != 0, x / (1 - p), 0.0), mask=mask)


@case("dropout", "tutorial 04")
def dropout(run: Launches):
    x, keep, out = run.normal(900), run.draw.integers(0, 2, 900, np.int32), run.empty(900)
    run(dropout_kernel, (4,), run.put(x), run.put(keep), out, 900, 0.5, BLOCK=256)
    return [(out, np.where(keep, x / 0.5, 0), 1e-6)]


@triton.jit
def seeded_dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    random = tl.rand(seed, offsets)
    tl.store(out_ptr + offsets, tl.where(random > p, x / (1 - p), 0.0), mask=mask)


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """Philox 4x32-10 (J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)."""
    c = [counters.astype(np.uint64), *(np.zeros(len(counters), np.uint64) for _ in range(3))]
    low, k0, k1 = np.uint64(0xFFFFFFFF), seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high = b >> np.uint64(32), a >> np.uint64(32)
        c = [high[0] ^ c[1] ^ np.uint64(k0), b & low, high[1] ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def uniform(seed: int, counters: np.ndarray) -> np.ndarray:
    bits = philox(seed, counters).view(np.int32)
    return np.where(bits < 0, ~bits, bits).astype(np.float32) * np.float32(4.6566127342e-10)


@case("seeded dropout", "tutorial 04")
def seeded_dropout(run: Launches):
    x, out = run.normal(500), run.empty(500)
    run(seeded_dropout_kernel, (2,), run.put(x), out, 500, 0.5, 123, BLOCK=256)
    return [(out, np.where(uniform(123, np.arange(500)) > 0.5, x / 0.5, 0), 1e-6)]


@case("layer norm forward", "tutorial 05")
def layer_norm(run: Launches):
    x, w, b = run.normal(8, 784), run.normal(784), run.normal(784)
    out, mean, rstd = run.empty(8, 784), run.empty(8), run.empty(8)
    run(
        layer_norm_fwd,
        (8,),
        run.put(x),
        out,
        run.put(w),
        run.put(b),
        mean,
        rstd,
        784,
        784,
        1e-5,
        BLOCK_SIZE=256,
    )
    exact = x.astype(np.float64)
    scale = 1 / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    normal = (exact - exact.mean(1, keepdims=True)) * scale
    return [(out, normal * w + b, 1e-5), (mean, exact.mean(1), 1e-5), (rstd, scale[:, 0], 1e-5)]


@triton.jit
def layer_norm_bwd(DX, DY, X, W, Mean, Rstd, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = tl.where(mask, xhat, 0.0)
    wdy = tl.where(mask, wdy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(DX + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)


@case("layer norm backward, inputs", "tutorial 05")
def layer_norm_gradient(run: Launches):
    x, dy, w = run.normal(4, 300), run.normal(4, 300), run.normal(300)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    out = run.empty(4, 300)
    run(layer_norm_bwd, (4,), out, *map(run.put, (dy, x, w, mean, rstd)), 300, 300, BLOCK=512)
    normal, wdy = (x - mean[:, None]) * rstd[:, None], w * dy
    c1, c2 = (normal * wdy).mean(1, keepdims=True), wdy.mean(1, keepdims=True)
    return [(out, (wdy - normal * c1 - c2) * rstd[:, None], 1e-4)]


@triton.jit
def partial_gradients(
    DY, X, DW, DB, Mean, Rstd, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dy = tl.load(DY + offs, mask=mask, other=0.0)
        x = tl.load(X + offs, mask=mask, other=0.0)
        mean = tl.load(Mean + rows, mask=rows < M, other=0.0)
        rstd = tl.load(Rstd + rows, mask=rows < M, other=0.0)
        dw += dy * (x - mean[:, None]) * rstd[:, None]
        db += dy
    tl.store(DW + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(DB + cols, tl.sum(db, axis=0), mask=cols < N)


@case("layer norm backward, weights", "tutorial 05")
def weight_gradient(run: Launches):
    x, dy = run.normal(50, 100), run.normal(50, 100)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    dw, db = run.empty(100), run.empty(100)
    run(
        partial_gradients,
        (4,),
        run.put(dy),
        run.put(x),
        dw,
        db,
        run.put(mean),
        run.put(rstd),
        50,
        100,
        BLOCK_M=16,
        BLOCK_N=32,
    )
    normal = (x - mean[:, None]) * rstd[:, None]
    return [(dw, (dy * normal).sum(0), 1e-4), (db, dy.sum(0), 1e-4)]
