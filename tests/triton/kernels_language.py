"""Kernels that use one part of the language each."""

from itertools import pairwise

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


@triton.jit
def transpose_kernel(X, Y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(X + m[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :])
    mask = (n < N)[:, None] & (m < M)[None, :]
    tl.store(Y + n[:, None] * M + m[None, :], tl.trans(x), mask=mask)


@case("transpose", "shapes")
def transpose(run: Launches):
    x, out = run.normal(50, 70), run.empty(70, 50)
    run(transpose_kernel, (2, 3), run.put(x), out, 50, 70, BM=32, BN=32)
    return [(out, x.T, 0)]


@triton.jit
def batched_kernel(A, B, C, N: tl.constexpr, BATCH: tl.constexpr):
    b = tl.arange(0, BATCH)[:, None, None]
    i = tl.arange(0, N)[None, :, None]
    j = tl.arange(0, N)[None, None, :]
    offs = b * N * N + i * N + j
    tl.store(C + offs, tl.dot(tl.load(A + offs), tl.load(B + offs)))


@case("batched dot", "products")
def batched_dot(run: Launches):
    a, b = (run.normal(4, 16, 16, dtype=np.float16) for _ in range(2))
    out = run.empty(4, 16, 16)
    run.macs += 4 * 16**3
    run(batched_kernel, (1,), run.put(a), run.put(b), out, N=16, BATCH=4)
    return [(out, a.astype(np.float64) @ b.astype(np.float64), 1e-4)]


@triton.jit
def gemv_kernel(A, X, Y, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM,), tl.float32)
    for n in range(0, N, BN):
        cols = n + tl.arange(0, BN)
        a = tl.load(A + rows[:, None] * N + cols[None, :], mask=cols[None, :] < N, other=0.0)
        x = tl.load(X + cols, mask=cols < N, other=0.0)
        acc += tl.sum(a * x[None, :], axis=1)
    tl.store(Y + rows, acc)


@case("gemv", "products")
def gemv(run: Launches):
    a, x, out = run.normal(64, 100), run.normal(100), run.empty(64)
    run(gemv_kernel, (4,), run.put(a), run.put(x), out, 100, BM=16, BN=64)
    return [(out, a.astype(np.float64) @ x, 1e-5)]


@triton.jit
def split_k_kernel(A, B, PARTS, M, N, K, SPLIT: tl.constexpr, B_: tl.constexpr):
    m = tl.program_id(0) * B_ + tl.arange(0, B_)
    n = tl.arange(0, B_)
    k = tl.program_id(1) * B_ + tl.arange(0, B_)
    acc = tl.zeros((B_, B_), tl.float32)
    for _ in range(K // (SPLIT * B_)):
        acc += tl.dot(
            tl.load(A + m[:, None] * K + k[None, :]), tl.load(B + k[:, None] * N + n[None, :])
        )
        k += SPLIT * B_
    part = tl.program_id(1) * M * N
    tl.store(PARTS + part + m[:, None] * N + n[None, :], acc)


@triton.jit
def add_parts_kernel(PARTS, C, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    parts = tl.arange(0, SPLIT)[:, None] * n + offs[None, :]
    tl.store(C + offs, tl.sum(tl.load(PARTS + parts), axis=0))


@case("split-k matmul, two launches", "products")
def split_k(run: Launches):
    a, b = run.normal(32, 128, dtype=np.float16), run.normal(128, 16, dtype=np.float16)
    parts, out = run.empty(4, 32, 16), run.empty(32, 16)
    run.macs += 32 * 16 * 128
    run(split_k_kernel, (2, 4), run.put(a), run.put(b), parts, 32, 16, 128, SPLIT=4, B_=16)
    run(add_parts_kernel, (2,), parts, out, 512, SPLIT=4, BLOCK=256)
    return [(out, a.astype(np.float64) @ b.astype(np.float64), 1e-3)]


@triton.jit
def welford(mean1, m1, w1, mean2, m2, w2):
    delta = mean2 - mean1
    w = w1 + w2
    ratio = tl.where(w == 0.0, 0.0, w2 / w)
    return mean1 + delta * ratio, m1 + m2 + delta * delta * w1 * ratio, w


@triton.jit
def welford_kernel(X, MEAN, VAR, N: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(X + row * N + tl.arange(0, N))
    mean, m2, weight = tl.reduce((x, tl.zeros_like(x), tl.full((N,), 1.0, tl.float32)), 0, welford)
    tl.store(MEAN + row, mean)
    tl.store(VAR + row, m2 / weight)


@case("Welford reduction", "reductions")
def welford_rows(run: Launches):
    x, mean, var = run.normal(5, 128), run.empty(5), run.empty(5)
    run(welford_kernel, (5,), run.put(x), mean, var, N=128)
    return [(mean, x.mean(1), 1e-5), (var, x.var(1), 1e-5)]


@triton.jit
def argmax_kernel(X, V, I, L, N: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(X + row * N + tl.arange(0, N))
    best, index = tl.max(x, axis=0, return_indices=True)
    tl.store(V + row, best)
    tl.store(I + row, index)
    tl.store(L + row, tl.argmin(x, axis=0))


@case("maxima and their positions", "reductions")
def argmax(run: Launches):
    x, v, i, low = (
        run.normal(5, 64),
        run.empty(5),
        run.empty(5, dtype=np.int32),
        run.empty(5, dtype=np.int32),
    )
    run(argmax_kernel, (5,), run.put(x), v, i, low, N=64)
    return [(v, x.max(1), 0), (i, x.argmax(1), 0), (low, x.argmin(1), 0)]


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scan_kernel(A, B, SUMS, PRODUCTS, STATES, BACK, N: tl.constexpr):
    row = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(A + row)
    b = tl.load(B + row)
    tl.store(SUMS + row, tl.cumsum(a, axis=0))
    tl.store(PRODUCTS + row, tl.associative_scan(a, 0, multiply))
    _, h = tl.associative_scan((a, b), 0, recurrence)
    tl.store(STATES + row, h)
    tl.store(BACK + row, tl.cumsum(a, axis=0, reverse=True))


@case("scans: sums, products, a recurrence", "scans")
def scans(run: Launches):
    a, b = run.draw.uniform(0.5, 1.5, (3, 32)).astype(np.float32), run.normal(3, 32)
    outs = [run.empty(3, 32) for _ in range(4)]
    run(scan_kernel, (3,), run.put(a), run.put(b), *outs, N=32)
    h, states = np.zeros(3), []
    for t in range(32):
        h = a[:, t].astype(np.float64) * h + b[:, t]
        states.append(h)
    exact = (
        np.cumsum(a, 1, np.float64),
        np.cumprod(a, 1, np.float64),
        np.stack(states, 1),
        np.cumsum(a[:, ::-1], 1, np.float64)[:, ::-1],
    )
    return [(out, each, 1e-5) for out, each in zip(outs, exact, strict=True)]


@triton.jit
def sort_kernel(X, UP, DOWN, N: tl.constexpr):
    row = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(X + row)
    tl.store(UP + row, tl.sort(x))
    tl.store(DOWN + row, tl.sort(x, descending=True))


@case("sort", "sorting")
def sort(run: Launches):
    x, up, down = run.normal(3, 32), run.empty(3, 32), run.empty(3, 32)
    run(sort_kernel, (3,), run.put(x), up, down, N=32)
    return [(up, np.sort(x, 1), 0), (down, -np.sort(-x, 1), 0)]


@triton.jit
def histogram_kernel(X, H, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(X + offs, mask=offs < n, other=-1)
    tl.store(H + tl.arange(0, BINS), tl.histogram(x, BINS))


@case("histogram", "sorting")
def histogram(run: Launches):
    x, out = run.draw.integers(0, 16, 200, np.int32), run.empty(16, dtype=np.int32)
    run(histogram_kernel, (1,), run.put(x), out, 200, BINS=16, BLOCK=256)
    return [(out, np.bincount(x, minlength=16), 0)]


@triton.jit
def join_kernel(A, B, OUT, SUM, N: tl.constexpr):
    offs = tl.arange(0, N)
    joined = tl.join(tl.load(A + offs), tl.load(B + offs))
    pairs = 2 * offs[:, None] + tl.arange(0, 2)[None, :]
    tl.store(OUT + pairs, joined)
    first, second = tl.split(tl.reshape(joined, (N, 2)) * 2.0)
    tl.store(SUM + offs, first + second)


@case("join, split", "shapes")
def join_split(run: Launches):
    a, b, out, total = run.normal(64), run.normal(64), run.empty(64, 2), run.empty(64)
    run(join_kernel, (1,), run.put(a), run.put(b), out, total, N=64)
    return [(out, np.stack([a, b], -1), 0), (total, 2 * (a + b), 1e-6)]


@triton.jit
def random_kernel(U, Z, R, seed, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(U + offs, tl.rand(seed, offs))
    tl.store(Z + offs, tl.randn(seed, offs))
    tl.store(R + offs, tl.randint(seed, offs).to(tl.int32, bitcast=True))


@case("random numbers", "random")
def random(run: Launches):
    from tests.triton.kernels_tutorials import philox, uniform

    u, z, r = run.empty(128), run.empty(128), run.empty(128, dtype=np.int32)
    run(random_kernel, (2,), u, z, r, 5, N=64)
    counters = np.arange(128)
    return [(u, uniform(5, counters), 1e-7), (r, philox(5, counters).view(np.int32), 0)]


@triton.jit
def jagged_kernel(X, OFFSETS, OUT, DIM: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(OFFSETS + row)
    end = tl.load(OFFSETS + row + 1)
    d = tl.arange(0, DIM)
    total = tl.zeros((DIM,), tl.float32)
    i = start
    while i < end:
        rows = i + tl.arange(0, BLOCK)
        x = tl.load(X + rows[:, None] * DIM + d[None, :], mask=rows[:, None] < end, other=0.0)
        total += tl.sum(x, axis=0)
        i += BLOCK
    tl.store(OUT + row * DIM + d, total / tl.maximum(end - start, 1))


@case("means of jagged rows", "reductions")
def jagged(run: Launches):
    x, offsets, out = run.normal(30, 32), np.array([0, 7, 7, 29, 30], np.int32), run.empty(4, 32)
    run(jagged_kernel, (4,), run.put(x), run.put(offsets), out, DIM=32, BLOCK=8)
    exact = [x[a:b].mean(0) if b > a else np.zeros(32) for a, b in pairwise(offsets)]
    return [(out, np.array(exact), 1e-5)]


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_stages=2) for block in (32, 256)], key=["n"]
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(X, Y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(Y + offs, tl.load(X + offs) * 2)
    else:
        tl.store(Y + offs, tl.load(X + offs, mask=offs < n) * 2, mask=offs < n)


@case("autotune and heuristics", "launches")
def tuned(run: Launches):
    x, out = run.normal(1000), run.empty(1000)
    run(tuned_kernel, lambda meta: (triton.cdiv(1000, meta["BLOCK"]),), run.put(x), out, 1000)
    return [(out, x * 2, 0)]


@triton.jit
def softmax_bwd_kernel(P, DP, DX, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    p = tl.load(P + row + offs, mask=offs < n, other=0.0)
    dp = tl.load(DP + row + offs, mask=offs < n, other=0.0)
    tl.store(DX + row + offs, p * (dp - tl.sum(p * dp, axis=0)), mask=offs < n)


@case("softmax backward", "reductions")
def softmax_gradient(run: Launches):
    p, dp, out = run.normal(4, 100), run.normal(4, 100), run.empty(4, 100)
    run(softmax_bwd_kernel, (4,), run.put(p), run.put(dp), out, 100, BLOCK=128)
    return [(out, p * (dp - (p * dp).sum(1, keepdims=True)), 1e-5)]


@triton.jit
def logsumexp_kernel(X, OUT, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * n + offs, mask=offs < n, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(OUT + row, m + tl.log(s))


@case("log-sum-exp", "reductions")
def logsumexp(run: Launches):
    x, out = run.normal(4, 300), run.empty(4)
    run(logsumexp_kernel, (4,), run.put(x), out, 300, BLOCK=128)
    return [(out, np.log(np.exp(x.astype(np.float64)).sum(1)), 1e-6)]


@triton.jit
def scatter_kernel(X, INDEX, OUT, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    index = tl.load(INDEX + offs, mask=mask, other=0)
    tl.store(OUT + index, tl.load(X + offs, mask=mask), mask=mask)


@case("scatter of single elements", "addresses")
def scatter(run: Launches):
    x, index, out = run.normal(40), run.draw.permutation(40).astype(np.int32), run.empty(40)
    run(scatter_kernel, (1,), run.put(x), run.put(index), out, 40, BLOCK=64)
    exact = np.zeros(40, np.float32)
    exact[index] = x
    return [(out, exact, 0)]


@triton.jit
def diagonal_kernel(X, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    below = i[:, None] >= i[None, :]
    x = tl.load(X + i[:, None] * N + i[None, :], mask=below, other=-1.0)
    tl.store(OUT + i[:, None] * N + i[None, :], x * 2, mask=i[:, None] <= i[None, :])


@case("triangular masks", "addresses")
def triangular(run: Launches):
    x, out = run.normal(16, 16), run.empty(16, 16)
    run(diagonal_kernel, (1,), run.put(x), out, N=16)
    lower = np.where(np.tril(np.ones((16, 16), bool)), x, -1)
    return [(out, np.triu(lower * 2), 0)]
