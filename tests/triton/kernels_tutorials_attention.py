"""Kernels of the tutorials of attention and of groups of products, written for these tests."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


@triton.jit
def attend(
    start_m,
    Q,
    K,
    V,
    sm_scale,
    Out,
    stride_h,
    N_CTX,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    off_h = tl.program_id(1)
    Q += off_h * stride_h
    K += off_h * stride_h
    V += off_h * stride_h
    Out += off_h * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD)
    q = tl.load(Q + offs_m[:, None] * HEAD + offs_d[None, :])
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    hi = (start_m + 1) * BLOCK_M if CAUSAL else N_CTX
    for start_n in range(0, hi, BLOCK_N):
        k = tl.load(K + offs_d[:, None] + (start_n + offs_n)[None, :] * HEAD)
        qk = tl.dot(q, k)
        if CAUSAL:
            mask = offs_m[:, None] >= (start_n + offs_n[None, :])
            qk = qk * qk_scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
            qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        l_i = l_i * alpha + l_ij if start_n > 0 else l_ij
        acc = acc * alpha[:, None]
        v = tl.load(V + (start_n + offs_n)[:, None] * HEAD + offs_d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc)
        m_i = m_ij
    acc = acc / l_i[:, None]
    tl.store(Out + offs_m[:, None] * HEAD + offs_d[None, :], acc.to(tl.float16))


@triton.jit
def flash_fwd(
    Q,
    K,
    V,
    sm_scale,
    Out,
    stride_h,
    N_CTX,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    start_m = tl.program_id(0)
    attend(start_m, Q, K, V, sm_scale, Out, stride_h, N_CTX, HEAD, BLOCK_M, BLOCK_N, CAUSAL)


@triton.jit
def persistent_flash_fwd(
    Q,
    K,
    V,
    sm_scale,
    Out,
    stride_h,
    N_CTX,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    for start_m in range(tl.program_id(0), tl.cdiv(N_CTX, BLOCK_M), tl.num_programs(0)):
        attend(start_m, Q, K, V, sm_scale, Out, stride_h, N_CTX, HEAD, BLOCK_M, BLOCK_N, CAUSAL)


def attention(run: Launches, *, causal: bool, kernel=flash_fwd, programs: int = 2):
    heads, tokens, depth = 2, 128, 64
    q, k, v = (run.normal(heads, tokens, depth, dtype=np.float16) for _ in range(3))
    out = run.empty(heads, tokens, depth, dtype=np.float16)
    run.macs += 2 * heads * tokens * tokens * depth
    run(
        kernel,
        (programs, heads),
        run.put(q),
        run.put(k),
        run.put(v),
        0.125,
        out,
        tokens * depth,
        tokens,
        HEAD=depth,
        BLOCK_M=64,
        BLOCK_N=32,
        CAUSAL=causal,
    )
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * 0.125
    if causal:
        scores = np.where(np.tril(np.ones((tokens, tokens), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return [(out, weights @ v.astype(np.float64), 2e-3)]


@case("flash attention forward", "tutorial 06")
def flash_attention(run: Launches):
    return attention(run, causal=False)


@case("flash attention forward, causal", "tutorial 06")
def causal_flash_attention(run: Launches):
    return attention(run, causal=True)


@case("flash attention forward, persistent", "tutorial 06")
def persistent_flash_attention(run: Launches):
    return attention(run, causal=True, kernel=persistent_flash_fwd, programs=1)


@triton.jit
def grouped_kernel(
    pointers,
    sizes,
    strides,
    group_size,
    # The tensors behind the pointers, which a launch maps for the PEs.
    a0,
    b0,
    c0,
    a1,
    b1,
    c1,
    NUM_PE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    tile = tl.program_id(0)
    last_end = 0
    for g in range(group_size):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        tiles_m = tl.cdiv(m, BM)
        tiles_n = tl.cdiv(n, BN)
        count = tiles_m * tiles_n
        while tile >= last_end and tile < last_end + count:
            lda = tl.load(strides + g * 3)
            ldb = tl.load(strides + g * 3 + 1)
            ldc = tl.load(strides + g * 3 + 2)
            a_ptr = tl.load(pointers + g * 3).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(pointers + g * 3 + 1).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(pointers + g * 3 + 2).to(tl.pointer_type(tl.float16))
            index = tile - last_end
            tile_m = index // tiles_n
            tile_n = index % tiles_n
            offs_m = tile_m * BM + tl.arange(0, BM)
            offs_n = tile_n * BN + tl.arange(0, BN)
            offs_k = tl.arange(0, BK)
            a_ptrs = a_ptr + offs_m[:, None] * lda + offs_k[None, :]
            b_ptrs = b_ptr + offs_k[:, None] * ldb + offs_n[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(tl.cdiv(k, BK)):
                a = tl.load(a_ptrs)
                b = tl.load(b_ptrs)
                acc += tl.dot(a, b)
                a_ptrs += BK
                b_ptrs += BK * ldb
            c_ptrs = c_ptr + ldc * offs_m[:, None] + offs_n[None, :]
            tl.store(c_ptrs, acc.to(tl.float16))
            tile += NUM_PE
        last_end = last_end + count


@case("grouped GEMM", "tutorial 08")
def grouped(run: Launches):
    shapes, pointers, kept, results = [(64, 64, 64), (32, 96, 32)], [], [], []
    for m, n, k in shapes:
        a, b = run.normal(m, k, dtype=np.float16), run.normal(k, n, dtype=np.float16)
        tensors = run.put(a), run.put(b), run.empty(m, n, dtype=np.float16)
        kept += tensors
        pointers.append([each.address for each in tensors])
        results.append((tensors[2], a.astype(np.float64) @ b.astype(np.float64), 2e-3))
        run.macs += m * n * k
    strides = np.array([[k, n, n] for _, n, k in shapes], np.int32)
    run(
        grouped_kernel,
        (2,),
        run.put(np.array(pointers, np.int64)),
        run.put(np.array(shapes, np.int32)),
        run.put(strides),
        2,
        *kept,
        NUM_PE=2,
        BM=32,
        BN=32,
        BK=32,
    )
    return results


@triton.jit
def persistent_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    NUM_PE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    start = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for tile in tl.range(start, tiles, NUM_PE, flatten=True):
        offs_m = (tile // tiles_n) * BM
        offs_n = (tile % tiles_n) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for ki in range(tl.cdiv(K, BK)):
            a = a_desc.load([offs_m, ki * BK])
            b = b_desc.load([offs_n, ki * BK])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([offs_m, offs_n], acc.to(tl.float16))


@case("persistent matmul, descriptors", "tutorial 09")
def persistent(run: Launches):
    m, n, k = 100, 80, 72
    a, b = run.normal(m, k, dtype=np.float16), run.normal(n, k, dtype=np.float16)
    out = run.empty(m, n, dtype=np.float16)
    run.macs += m * n * k
    run(
        persistent_kernel,
        (3,),
        run.put(a),
        run.put(b),
        out,
        m,
        n,
        k,
        NUM_PE=3,
        BM=32,
        BN=32,
        BK=32,
    )
    return [(out, a.astype(np.float64) @ b.astype(np.float64).T, 2e-3)]
