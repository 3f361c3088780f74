"""Kernels of experts and convolutions as public collections have them, written for these tests."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case, row_softmax


@triton.jit
def linear_attention_kernel(Q, K, V, O, T, scale, C: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    t = tl.arange(0, C)
    d = tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    causal = t[:, None] >= t[None, :]
    for chunk in range(0, T, C):
        offs = head * T * D + (chunk + t)[:, None] * D + d[None, :]
        q = tl.load(Q + offs)
        k = tl.load(K + offs)
        v = tl.load(V + offs)
        s = tl.dot(q, tl.trans(k))
        s = tl.where(causal, s, 0)
        o = tl.dot(s.to(v.dtype), v) + tl.dot(q, state.to(q.dtype))
        state += tl.dot(tl.trans(k), v)
        tl.store(O + offs, o * scale)


@case("linear attention, chunks", "attention")
def linear_attention(run: Launches):
    q, k, v = (run.normal(2, 64, 32, dtype=np.float16) for _ in range(3))
    out = run.empty(2, 64, 32)
    run(linear_attention_kernel, (2,), *map(run.put, (q, k, v)), out, 64, 0.1, C=16, D=32)
    s = np.tril(q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2))
    return [(out, s @ v.astype(np.float64) * 0.1, 1e-2)]


@triton.jit
def moe_gemm_kernel(
    A,
    B,
    C,
    IDS,
    EXPERTS,
    tokens,
    N,
    K,
    TOPK: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    block_m = tl.program_id(0)
    block_n = tl.program_id(1)
    ids = tl.load(IDS + block_m * BM + tl.arange(0, BM))
    mask = ids < tokens * TOPK
    expert = tl.load(EXPERTS + block_m)
    offs_n = block_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = A + (ids[:, None] // TOPK) * K + offs_k[None, :]
    b_ptrs = B + expert * N * K + offs_n[None, :] * K + offs_k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=mask[:, None] & (offs_k[None, :] < K - k * BK), other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK
    tl.store(
        C + ids[:, None] * N + offs_n[None, :], acc, mask=mask[:, None] & (offs_n[None, :] < N)
    )


@case("MoE grouped GEMM", "mixture of experts")
def moe_gemm(run: Launches):
    tokens, topk, n, k, experts, bm = 20, 2, 32, 48, 3, 16
    a, b = run.normal(tokens, k, dtype=np.float16), run.normal(experts, n, k, dtype=np.float16)
    chosen = run.draw.integers(0, experts, tokens * topk)
    ids, owner = [], []
    for e in range(experts):
        own = list(np.flatnonzero(chosen == e))
        own += [tokens * topk] * (-len(own) % bm)
        ids += own
        owner += [e] * (len(own) // bm)
    out = run.empty(tokens * topk, n)
    run(
        moe_gemm_kernel,
        (len(owner), 1),
        run.put(a),
        run.put(b),
        out,
        run.put(np.array(ids, np.int32)),
        run.put(np.array(owner, np.int32)),
        tokens,
        n,
        k,
        TOPK=topk,
        BM=bm,
        BN=32,
        BK=16,
    )
    exact = [a[i // topk].astype(np.float64) @ b[chosen[i]].T for i in range(tokens * topk)]
    return [(out, np.array(exact), 2e-3)]


@triton.jit
def cache_store_kernel(K, CACHE, SLOTS, DIM: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(SLOTS + token)
    if slot >= 0:
        dims = tl.arange(0, DIM)
        tl.store(CACHE + slot * DIM + dims, tl.load(K + token * DIM + dims))


@case("store to a paged cache", "attention")
def cache_store(run: Launches):
    k, slots = run.normal(6, 64, dtype=np.float16), np.array([4, 0, -1, 7, 2, 9], np.int32)
    cache = run.empty(10, 64, dtype=np.float16)
    run(cache_store_kernel, (6,), run.put(k), cache, run.put(slots), DIM=64)
    exact = np.zeros((10, 64), np.float16)
    exact[slots[slots >= 0]] = k[slots >= 0]
    return [(cache, exact, 0)]


@triton.jit
def topk_gate_kernel(X, W, I, E: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    e = tl.arange(0, E)
    x = tl.load(X + row * E + e)
    x = tl.exp(x - tl.max(x, axis=0))
    x = x / tl.sum(x, axis=0)
    for i in tl.static_range(K):
        best = tl.argmax(x, axis=0)
        tl.store(I + row * K + i, best)
        tl.store(W + row * K + i, tl.max(x, axis=0))
        x = tl.where(e == best, -1.0, x)


@case("top-k gate", "mixture of experts")
def topk_gate(run: Launches):
    x, w, i = run.normal(5, 16), run.empty(5, 2), run.empty(5, 2, dtype=np.int32)
    run(topk_gate_kernel, (5,), run.put(x), w, i, E=16, K=2)
    p = row_softmax(x.astype(np.float64))
    order = np.argsort(-p, 1)[:, :2]
    return [(i, order, 0), (w, np.take_along_axis(p, order, 1), 1e-5)]


@triton.jit
def conv2d_kernel(
    X,
    W,
    Y,
    H,
    WD,
    OC,
    OH,
    OW,
    IC: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    BP: tl.constexpr,
    BC: tl.constexpr,
):
    pixels = tl.program_id(0) * BP + tl.arange(0, BP)
    channels = tl.arange(0, BC)
    oh = pixels // OW
    ow = pixels % OW
    acc = tl.zeros((BP, BC), tl.float32)
    ic = tl.arange(0, IC)
    for kh in range(KH):
        for kw in range(KW):
            x = tl.load(
                X + ic[None, :] * H * WD + (oh + kh)[:, None] * WD + (ow + kw)[:, None],
                mask=(pixels < OH * OW)[:, None],
                other=0.0,
            )
            w = tl.load(W + channels[None, :] * IC * KH * KW + ic[:, None] * KH * KW + kh * KW + kw)
            acc += tl.dot(x, w)
    tl.store(
        Y + channels[None, :] * OH * OW + pixels[:, None], acc, mask=(pixels < OH * OW)[:, None]
    )


@case("convolution 3 x 3", "convolutions")
def conv2d(run: Launches):
    x, w = run.normal(16, 10, 12, dtype=np.float16), run.normal(16, 16, 3, 3, dtype=np.float16)
    out = run.empty(16, 8, 10)
    run(
        conv2d_kernel,
        (3,),
        run.put(x),
        run.put(w),
        out,
        10,
        12,
        16,
        8,
        10,
        IC=16,
        KH=3,
        KW=3,
        BP=32,
        BC=16,
    )
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (1, 2))
    return [(out, np.einsum("chwij,ocij->ohw", windows, w.astype(np.float64)), 3e-3)]


@triton.jit
def max_pool_kernel(X, Y, W, OW, n, BLOCK: tl.constexpr):
    out = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = out < n
    first = (out // OW) * 2 * W + (out % OW) * 2
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for i in tl.static_range(2):
        for j in tl.static_range(2):
            best = tl.maximum(best, tl.load(X + first + i * W + j, mask=mask, other=float("-inf")))
    tl.store(Y + out, best, mask=mask)


@case("max pool 2 x 2", "convolutions")
def max_pool(run: Launches):
    x, out = run.normal(8, 12), run.empty(4, 6)
    run(max_pool_kernel, (2,), run.put(x), out, 12, 6, 24, BLOCK=16)
    return [(out, x.reshape(4, 2, 6, 2).max((1, 3)), 0)]
