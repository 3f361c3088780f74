"""Kernels of layers, losses and optimizers as public collections have them, written for these
tests.
"""

import math

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@triton.jit
def rms_norm_kernel(X, W, Y, RSTD, stride, n, eps, offset, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask, other=0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(RSTD + row, rstd)
    tl.store(Y + row * stride + cols, (x * rstd).to(tl.float16) * (offset + w), mask=mask)


@case("RMS norm forward", "norms")
def rms_norm(run: Launches):
    x, w = run.normal(6, 200, dtype=np.float16), run.normal(200, dtype=np.float16)
    out, rstd = run.empty(6, 200, dtype=np.float16), run.empty(6)
    run(rms_norm_kernel, (6,), run.put(x), run.put(w), out, rstd, 200, 200, 1e-6, 0.0, BLOCK=256)
    exact = x.astype(np.float64)
    scale = 1 / np.sqrt((exact**2).mean(1) + 1e-6)
    return [(out, exact * scale[:, None] * w, 4e-3), (rstd, scale, 1e-5)]


@triton.jit
def rms_norm_bwd_kernel(DY, DX, X, W, RSTD, DW, stride, rows, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    w = tl.load(W + cols, mask=mask, other=0.0)
    for row in range(program, rows, programs):
        dy = tl.load(DY + row * stride + cols, mask=mask, other=0.0)
        x = tl.load(X + row * stride + cols, mask=mask, other=0.0)
        rstd = tl.load(RSTD + row)
        m = dy * w
        dx = rstd * m
        dx += rstd * (-(1 / n) * rstd * rstd * tl.sum(m * x, axis=0) * x)
        dw += dy * (x * rstd)
        tl.store(DX + row * stride + cols, dx, mask=mask)
    tl.store(DW + program * stride + cols, dw, mask=mask)


@case("RMS norm backward", "norms")
def rms_norm_gradient(run: Launches):
    x, dy, w = run.normal(9, 120), run.normal(9, 120), run.normal(120)
    rstd = 1 / np.sqrt((x**2).mean(1) + 1e-6)
    dx, dw = run.empty(9, 120), run.empty(4, 120)
    run(
        rms_norm_bwd_kernel,
        (4,),
        run.put(dy),
        dx,
        run.put(x),
        run.put(w),
        run.put(rstd),
        dw,
        120,
        9,
        120,
        BLOCK=128,
    )
    r, m = rstd[:, None], dy * w
    parts = [sum(((dy * x * r)[i] for i in range(p, 9, 4)), np.zeros(120)) for p in range(4)]
    exact = r * m - r**3 * (m * x).sum(1, keepdims=True) * x / 120
    return [(dx, exact, 1e-4), (dw, np.array(parts), 1e-4)]


@triton.jit
def group_norm_kernel(X, Y, W, B, channels, hw, eps, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    size = GROUP * hw
    offs = tl.arange(0, BLOCK)
    mask = offs < size
    x = tl.load(X + group * size + offs, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / size
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / size + eps)
    channel = group * GROUP + offs // hw
    w = tl.load(W + channel, mask=mask)
    b = tl.load(B + channel, mask=mask)
    tl.store(Y + group * size + offs, d * rstd * w + b, mask=mask)


@case("group norm", "norms")
def group_norm(run: Launches):
    x, w, b, out = run.normal(8, 30), run.normal(8), run.normal(8), run.empty(8, 30)
    run(
        group_norm_kernel,
        (4,),
        run.put(x),
        out,
        run.put(w),
        run.put(b),
        8,
        30,
        1e-5,
        GROUP=2,
        BLOCK=64,
    )
    g = x.reshape(4, 60).astype(np.float64)
    g = (g - g.mean(1, keepdims=True)) / np.sqrt(g.var(1, keepdims=True) + 1e-5)
    return [(out, g.reshape(8, 30) * w[:, None] + b[:, None], 1e-4)]


@triton.jit
def rope_kernel(Q, COS, SIN, stride, HEADS: tl.constexpr, HALF: tl.constexpr):
    row = tl.program_id(0)
    cos = tl.load(COS + row * HALF + tl.arange(0, HALF))
    sin = tl.load(SIN + row * HALF + tl.arange(0, HALF))
    heads = tl.arange(0, HEADS)[:, None] * (2 * HALF)
    first = row * stride + heads + tl.arange(0, HALF)[None, :]
    q1 = tl.load(Q + first).to(tl.float32)
    q2 = tl.load(Q + first + HALF).to(tl.float32)
    tl.store(Q + first, q1 * cos - q2 * sin)
    tl.store(Q + first + HALF, q2 * cos + q1 * sin)


@case("rotary embedding", "attention")
def rotary(run: Launches):
    q, angle = run.normal(5, 4, 32), run.normal(5, 16)
    tensor = run.put(q)
    run(
        rope_kernel,
        (5,),
        tensor,
        run.put(np.cos(angle)),
        run.put(np.sin(angle)),
        128,
        HEADS=4,
        HALF=16,
    )
    a, b = q[..., :16], q[..., 16:]
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return [(tensor, np.concatenate([a * c - b * s, b * c + a * s], -1), 1e-5)]


@triton.jit
def interleaved_rope_kernel(Q, COS, SIN, OUT, HALF: tl.constexpr):
    row = tl.program_id(0)
    pairs = tl.load(Q + row * 2 * HALF + tl.arange(0, 2 * HALF))
    even, odd = tl.split(tl.reshape(pairs, (HALF, 2)))
    cos = tl.load(COS + row * HALF + tl.arange(0, HALF))
    sin = tl.load(SIN + row * HALF + tl.arange(0, HALF))
    out = tl.interleave(even * cos - odd * sin, odd * cos + even * sin)
    tl.store(OUT + row * 2 * HALF + tl.arange(0, 2 * HALF), out)


@case("rotary embedding, interleaved", "attention")
def interleaved_rotary(run: Launches):
    q, angle, out = run.normal(5, 32), run.normal(5, 16), run.empty(5, 32)
    run(
        interleaved_rope_kernel,
        (5,),
        run.put(q),
        run.put(np.cos(angle)),
        run.put(np.sin(angle)),
        out,
        HALF=16,
    )
    a, b, c, s = q[:, ::2], q[:, 1::2], np.cos(angle), np.sin(angle)
    return [(out, np.stack([a * c - b * s, b * c + a * s], -1).reshape(5, 32), 1e-5)]


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_fwd_kernel(A, B, C, stride, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    a = tl.load(A + row * stride + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(B + row * stride + cols, mask=mask, other=0)
    tl.store(C + row * stride + cols, silu(a).cast(b.dtype) * b, mask=mask)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


@case("SwiGLU forward", "activations")
def swiglu(run: Launches):
    a, b, out = run.normal(6, 100), run.normal(6, 100), run.empty(6, 100)
    run(swiglu_fwd_kernel, (6,), run.put(a), run.put(b), out, 100, n=100, BLOCK=128)
    return [(out, a * sigmoid(a) * b, 1e-5)]


@triton.jit
def swiglu_bwd_kernel(DC, A, B, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = row * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    dc = tl.load(DC + cols, mask=mask, other=0)
    a = tl.load(A + cols, mask=mask, other=0)
    b = tl.load(B + cols, mask=mask, other=0)
    sig = tl.sigmoid(a)
    tl.store(A + cols, dc * (a * sig * (1 - sig) + sig) * b, mask=mask)
    tl.store(B + cols, dc * a * sig, mask=mask)


@case("SwiGLU backward, in place", "activations")
def swiglu_gradient(run: Launches):
    dc, a, b = (run.normal(4, 100) for _ in range(3))
    ta, tb = run.put(a), run.put(b)
    run(swiglu_bwd_kernel, (4,), run.put(dc), ta, tb, 100, 100, BLOCK=128)
    s = sigmoid(a)
    return [(ta, dc * (a * s * (1 - s) + s) * b, 1e-5), (tb, dc * a * s, 1e-5)]


@triton.jit
def geglu_kernel(A, B, C, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(A + offs, mask=mask, other=0)
    b = tl.load(B + offs, mask=mask, other=0)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    tanh = 2 * tl.sigmoid(2 * inner) - 1
    tl.store(C + offs, 0.5 * a * (1 + tanh) * b, mask=mask)


@case("GeGLU", "activations")
def geglu(run: Launches):
    a, b, out = run.normal(700), run.normal(700), run.empty(700)
    run(geglu_kernel, (3,), run.put(a), run.put(b), out, 700, BLOCK=256)
    inner = 0.7978845608028654 * (a + 0.044715 * a.astype(np.float64) ** 3)
    return [(out, 0.5 * a * (1 + np.tanh(inner)) * b, 1e-5)]


@triton.jit
def gelu_erf_kernel(X, Y, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + offs, mask=offs < n)
    tl.store(Y + offs, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=offs < n)


@case("GELU by erf", "activations")
def gelu(run: Launches):
    x, out = run.normal(600), run.empty(600)
    run(gelu_erf_kernel, (2,), run.put(x), out, 600, BLOCK=512)
    erf = np.array([math.erf(each / math.sqrt(2)) for each in x.tolist()])
    return [(out, 0.5 * x * (1 + erf), 1e-6)]


@triton.jit
def cross_entropy_kernel(X, stride, T, LOSS, n, ignore, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(T + row)
    X += row * stride
    if target == ignore:
        for i in range(0, n, BLOCK):
            offs = i + tl.arange(0, BLOCK)
            tl.store(X + offs, 0.0, mask=offs < n)
        return
    m = float("-inf")
    d = 0.0
    chosen = tl.load(X + target).cast(tl.float32)
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        x = tl.load(X + offs, mask=offs < n, other=float("-inf")).cast(tl.float32)
        block_max = tl.max(x)
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        x = tl.load(X + offs, mask=offs < n, other=float("-inf")).cast(tl.float32)
        x = tl.exp(x - m) / d
        x = tl.where(offs != target, x, x - 1)
        tl.store(X + offs, x, mask=offs < n)
    tl.store(LOSS + row, m + tl.log(d) - chosen)


@case("cross entropy, gradient in place", "losses")
def cross_entropy(run: Launches):
    x, t = run.normal(5, 300), np.array([7, 0, -100, 299, 128], np.int64)
    logits, loss = run.put(x), run.empty(5)
    run(cross_entropy_kernel, (5,), logits, 300, run.put(t), loss, 300, -100, BLOCK=128)
    p, exact, is_used = softmax(x.astype(np.float64)), np.zeros(5), t >= 0
    exact[is_used] = -np.log(p[np.arange(5), t])[is_used]
    gradient = p.copy()
    gradient[np.arange(5)[is_used], t[is_used]] -= 1
    gradient[~is_used] = 0
    return [(loss, exact, 1e-5), (logits, gradient, 1e-5)]


@triton.jit
def kl_kernel(Y, GT, LOSS, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        mask = offs < n
        y = tl.load(Y + row * n + offs, mask=mask, other=0.0)
        target = tl.load(GT + row * n + offs, mask=mask, other=0.0)
        total += tl.sum(target * (tl.log(tl.maximum(target, eps)) - y))
    tl.store(LOSS + row, total)


@case("KL divergence", "losses")
def kl_divergence(run: Launches):
    p = softmax(run.normal(4, 200)).astype(np.float32)
    log_q, loss = np.log(softmax(run.normal(4, 200))).astype(np.float32), run.empty(4)
    run(kl_kernel, (4,), run.put(log_q), run.put(p), loss, 200, 1e-10, BLOCK=128)
    exact = (p.astype(np.float64) * (np.log(p.astype(np.float64)) - log_q)).sum(1)
    return [(loss, exact, 1e-5)]


@triton.jit
def adamw_kernel(P, G, M, V, lr, beta1, beta2, eps, decay, step1, step2, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(P + offs, mask=mask)
    g = tl.load(G + offs, mask=mask)
    m = beta1 * tl.load(M + offs, mask=mask) + (1 - beta1) * g
    v = beta2 * tl.load(V + offs, mask=mask) + (1 - beta2) * g * g
    p = p * (1 - lr * decay) - lr * (m / step1) / (tl.sqrt(v / step2) + eps)
    tl.store(P + offs, p, mask=mask)
    tl.store(M + offs, m, mask=mask)
    tl.store(V + offs, v, mask=mask)


@case("fused AdamW", "optimizers")
def adamw(run: Launches):
    p, g, m = (run.normal(900) for _ in range(3))
    v = np.abs(run.normal(900))
    tensors = [run.put(each) for each in (p, g, m, v)]
    run(adamw_kernel, (4,), *tensors, 1e-2, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, 900, BLOCK=256)
    m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    exact = p * (1 - 1e-4) - 1e-2 * (m2 / 0.1) / (np.sqrt(v2 / 0.001) + 1e-8)
    return [(tensors[0], exact, 1e-5), (tensors[2], m2, 1e-5), (tensors[3], v2, 1e-5)]


@triton.jit
def lion_kernel(P, G, M, lr, decay, beta1, beta2, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    p = tl.load(P + offs, mask=mask) * (1 - lr * decay)
    g = tl.load(G + offs, mask=mask)
    m = tl.load(M + offs, mask=mask)
    update = m * beta1 + g * (1 - beta1)
    p = p + tl.where(update > 0, -lr, tl.where(update < 0, lr, 0.0))
    tl.store(P + offs, p, mask=mask)
    tl.store(M + offs, m * beta2 + g * (1 - beta2), mask=mask)


@case("Lion", "optimizers")
def lion(run: Launches):
    p, g, m = (run.normal(500) for _ in range(3))
    tensors = [run.put(each) for each in (p, g, m)]
    run(lion_kernel, (2,), *tensors, 1e-2, 0.1, 0.9, 0.99, 500, BLOCK=256)
    exact = p * (1 - 1e-3) - 1e-2 * np.sign(0.9 * m + 0.1 * g)
    return [(tensors[0], exact, 1e-5), (tensors[2], 0.99 * m + 0.01 * g, 1e-5)]


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
    for page in range(0, tl.cdiv(length, PAGE)):
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
        results.append(softmax(q[i].astype(np.float64) @ keys.T * dim**-0.5) @ values)
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
    for k in range(0, tl.cdiv(K, BK)):
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
    p = softmax(x.astype(np.float64))
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
