"""Kernels of inference as public collections have them, written for these tests."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case, row_softmax


@triton.jit
def embedding_kernel(E, IDS, OUT, tokens, DIM: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < tokens
    ids = tl.load(IDS + rows, mask=mask, other=0)
    cols = tl.arange(0, DIM)
    e = tl.load(E + ids[:, None] * DIM + cols[None, :], mask=mask[:, None], other=0.0)
    tl.store(OUT + rows[:, None] * DIM + cols[None, :], e, mask=mask[:, None])


@case("embedding", "layers")
def embedding(run: Launches):
    table, ids = run.normal(50, 64), run.draw.integers(0, 50, 37, np.int32)
    out = run.empty(37, 64)
    run(embedding_kernel, (3,), run.put(table), run.put(ids), out, 37, DIM=64, BLOCK=16)
    return [(out, table[ids], 0)]


@triton.jit
def paged_decode_kernel(
    Q,
    K,
    V,
    TABLE,
    LENGTHS,
    OUT,
    scale,
    table_stride,
    PAGE: tl.constexpr,
    DIM: tl.constexpr,
    HEADS: tl.constexpr,
):
    sequence = tl.program_id(0)
    length = tl.load(LENGTHS + sequence)
    heads = tl.arange(0, HEADS)
    dims = tl.arange(0, DIM)
    q = tl.load(Q + sequence * HEADS * DIM + heads[:, None] * DIM + dims[None, :])
    m = tl.full([HEADS], float("-inf"), tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    acc = tl.zeros([HEADS, DIM], tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        block = tl.load(TABLE + sequence * table_stride + page)
        slots = tl.arange(0, PAGE)
        kv = block * PAGE * DIM + slots[:, None] * DIM + dims[None, :]
        k = tl.load(K + kv)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where((page * PAGE + slots)[None, :] < length, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        v = tl.load(V + kv)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        total = total * alpha + tl.sum(p, 1)
        m = m_new
    tl.store(
        OUT + sequence * HEADS * DIM + heads[:, None] * DIM + dims[None, :], acc / total[:, None]
    )


@case("paged attention decode", "attention")
def paged_decode(run: Launches):
    heads, dim, page, lengths = 16, 32, 16, np.array([40, 16, 7], np.int32)
    q = run.normal(3, heads, dim, dtype=np.float16)
    k, v = (run.normal(8, page, dim, dtype=np.float16) for _ in range(2))
    table = np.array([[5, 2, 7], [1, 0, 0], [3, 0, 0]], np.int32)
    out = run.empty(3, heads, dim)
    run(
        paged_decode_kernel,
        (3,),
        *map(run.put, (q, k, v, table, lengths)),
        out,
        dim**-0.5,
        3,
        PAGE=page,
        DIM=dim,
        HEADS=heads,
    )
    results = []
    for i, length in enumerate(lengths):
        keys, values = (x[table[i]].reshape(-1, dim)[:length].astype(np.float64) for x in (k, v))
        results.append(row_softmax(q[i].astype(np.float64) @ keys.T * dim**-0.5) @ values)
    return [(out, np.array(results), 2e-3)]


@triton.jit
def int8_matmul_kernel(
    A, B, SA, SB, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        a = tl.load(A + offs_m[:, None] * K + (k + offs_k)[None, :])
        b = tl.load(B + (k + offs_k)[:, None] * N + offs_n[None, :])
        acc += tl.dot(a, b, out_dtype=tl.int32)
    sa = tl.load(SA + offs_m)
    sb = tl.load(SB + offs_n)
    c = acc.to(tl.float32) * sa[:, None] * sb[None, :]
    tl.store(C + offs_m[:, None] * N + offs_n[None, :], c.to(tl.float16))


@case("int8 matmul with scales", "quantised")
def int8_matmul(run: Launches):
    a, b = (run.draw.integers(-128, 128, s, np.int8) for s in ((64, 96), (96, 64)))
    sa, sb, out = (
        np.abs(run.normal(64)) / 100,
        np.abs(run.normal(64)) / 100,
        run.empty(64, 64, dtype=np.float16),
    )
    run.macs += 64 * 64 * 96
    run(
        int8_matmul_kernel,
        (2, 2),
        *map(run.put, (a, b, sa, sb)),
        out,
        64,
        64,
        96,
        BM=32,
        BN=32,
        BK=32,
    )
    return [(out, (a.astype(np.int64) @ b.astype(np.int64)) * sa[:, None] * sb, 1e-3)]


@triton.jit
def weight_only_kernel(X, W, S, Y, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    offs_m = tl.arange(0, BM)
    offs_n = tl.program_id(0) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(X + offs_m[:, None] * K + k + offs_k[None, :])
        w = tl.load(W + offs_n[None, :] * (K // 8) + (k + offs_k)[:, None] // 8)
        w = (w >> ((offs_k % 8) * 4)[:, None]) & 0xF
        acc += tl.dot(x, (w - 8).to(tl.float16))
    tl.store(Y + offs_m[:, None] * N + offs_n[None, :], acc * tl.load(S + offs_n)[None, :])


@case("int4 weights, packed", "quantised")
def weight_only(run: Launches):
    x, w = run.normal(16, 64, dtype=np.float16), run.draw.integers(0, 16, (32, 64))
    shifts = np.arange(8) * 4
    packed = (w.reshape(32, 8, 8).astype(np.uint64) << shifts.astype(np.uint64)).sum(-1)
    s, out = np.abs(run.normal(32)), run.empty(16, 32)
    run(
        weight_only_kernel,
        (2,),
        run.put(x),
        run.put(packed.astype(np.uint32).view(np.int32)),
        run.put(s),
        out,
        32,
        64,
        BM=16,
        BN=16,
        BK=32,
    )
    return [(out, x.astype(np.float64) @ (w - 8).T * s, 1e-3)]


@triton.jit
def quantize_rows_kernel(X, Q, S, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(X + row * n + cols, mask=cols < n, other=0.0)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    q = x / scale
    q = tl.where(q >= 0, tl.floor(q + 0.5), tl.ceil(q - 0.5))
    tl.store(Q + row * n + cols, q.to(tl.int8), mask=cols < n)
    tl.store(S + row, scale)


@case("quantise rows to int8", "quantised")
def quantize_rows(run: Launches):
    x, q, s = run.normal(6, 100), run.empty(6, 100, dtype=np.int8), run.empty(6)
    run(quantize_rows_kernel, (6,), run.put(x), q, s, 100, BLOCK=128)
    scale = (np.abs(x).max(1) / np.float32(127)).astype(np.float32)
    scaled = (x / scale[:, None]).astype(np.float64)
    exact = np.where(scaled >= 0, np.floor(scaled + 0.5), np.ceil(scaled - 0.5))
    return [(q, exact, 0.01), (s, scale, 1e-6)]
