"""Kernels with atomic operations: results that programs add up, locks, counters of work."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


@triton.jit
def histogram_kernel(X, H, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(X + offs, mask=mask, other=0)
    tl.atomic_add(H + x, 1, mask=mask)


@case("histogram, atomic", "sorting")
def histogram(run: Launches):
    x, bins = run.draw.integers(0, 16, 256, np.int32), run.empty(16, dtype=np.int32)
    run(histogram_kernel, (4,), run.spread(x), bins, 250, BLOCK=64)
    return [(bins, np.bincount(x[:250], minlength=16), 0)]


@triton.jit
def sum_kernel(X, Out, Count, BLOCK: tl.constexpr):
    x = tl.load(X + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(Out + tl.arange(0, BLOCK) % 8, x, sem="relaxed")
    tl.atomic_add(Count, 1)


@triton.jit
def split_k_kernel(
    A, B, C, K, stride, SPLIT: tl.constexpr, M: tl.constexpr, N: tl.constexpr, DEPTH: tl.constexpr
):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(tl.program_id(0) * DEPTH, K, SPLIT * DEPTH):
        depth = k + tl.arange(0, DEPTH)
        a = tl.load(A + rows[:, None] * K + depth[None, :])
        b = tl.load(B + depth[:, None] * stride + cols[None, :])
        acc += tl.dot(a, b)
    tl.atomic_add(C + rows[:, None] * stride + cols[None, :], acc, sem="relaxed")


@case("split-k matmul, atomic", "products")
def split_k(run: Launches):
    a, b = run.normal(32, 256, dtype=np.float16), run.normal(256, 16, dtype=np.float16)
    out = run.empty(32, 16)
    run.macs += 32 * 16 * 256
    run(
        split_k_kernel, (4,), run.spread(a), run.put(b), out, 256, 16, SPLIT=4, M=32, N=16, DEPTH=32
    )
    return [(out, a.astype(np.float64) @ b.astype(np.float64), 1e-4)]


@triton.jit
def layer_norm_locked(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    group = row % GROUPS
    Lock += group
    Count = Lock + GROUPS
    DW = DW + group * N + cols
    DB = DB + group * N + cols
    x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean, rstd = tl.load(Mean + row), tl.load(Rstd + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(DX + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    dw, db = dy * xhat, dy
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    if tl.load(Count) == 0:
        tl.atomic_xchg(Count, 1)
    else:
        dw += tl.load(DW, mask=mask)
        db += tl.load(DB, mask=mask)
    tl.store(DW, dw, mask=mask)
    tl.store(DB, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@case("layer norm backward, locks", "tutorial 05")
def layer_norm_backward(run: Launches):
    groups, rows, columns = 2, 8, 100
    x, dy, w = run.normal(rows, columns), run.normal(rows, columns), run.normal(columns)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    dx, dw, db = (run.empty(count, columns) for count in (rows, groups, groups))
    locks = run.empty(2 * groups, dtype=np.int32)
    given = map(run.put, (x, w, mean, rstd))
    arguments = (dx, run.spread(dy), dw, db, *given, locks, columns, columns)
    run(layer_norm_locked, (rows,), *arguments, GROUPS=groups, BLOCK=128)
    normal, wdy = (x - mean[:, None]) * rstd[:, None], w * dy
    c1, c2 = (normal * wdy).mean(1, keepdims=True), wdy.mean(1, keepdims=True)
    grouped = (dy * normal).reshape(-1, groups, columns).sum(0)
    return [
        (dx, (wdy - normal * c1 - c2) * rstd[:, None], 1e-4),
        (dw, grouped, 1e-4),
        (db, dy.reshape(-1, groups, columns).sum(0), 1e-4),
        (locks, np.repeat([0, 1], groups), 0),
    ]


@triton.jit
def counted_rows_kernel(Next, X, Y, M, N: tl.constexpr):
    cols = tl.arange(0, N)
    row = tl.atomic_add(Next, 1)
    while row < M:
        tl.store(Y + row * N + cols, tl.exp(tl.load(X + row * N + cols)))
        row = tl.atomic_add(Next, 1)


@case("rows from a work counter", "launches")
def counted_rows(run: Launches):
    x, out, count = run.normal(20, 64), run.empty(20, 64), run.empty(1, dtype=np.int32)
    run(counted_rows_kernel, (4,), count, run.spread(x), out, 20, N=64)
    # Each program takes a number that is no row at its end.
    return [(out, np.exp(x.astype(np.float64)), 1e-5), (count, np.array([24]), 0)]


@triton.jit
def extremes_kernel(X, Out, BLOCK: tl.constexpr):
    x = tl.load(X + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_max(Out, tl.max(x, axis=0))
    tl.atomic_min(Out + 1, tl.min(x, axis=0))


@case("maximum of all rows, atomic", "reductions")
def extremes(run: Launches):
    x, out = run.normal(256), run.put(np.array([-np.inf, np.inf], np.float32))
    run(extremes_kernel, (4,), run.spread(x), out, BLOCK=64)
    return [(out, np.array([x.max(), x.min()]), 0)]
