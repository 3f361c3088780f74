"""Kernels of layers, losses and optimizers as public collections have them, written for these
tests.
"""

import math

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


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
