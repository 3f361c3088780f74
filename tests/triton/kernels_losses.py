"""Kernels of losses and optimizers as public collections have them, written for these tests."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case, row_softmax


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
    p, exact, is_used = row_softmax(x.astype(np.float64)), np.zeros(5), t >= 0
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
    p = row_softmax(run.normal(4, 200)).astype(np.float32)
    log_q, loss = np.log(row_softmax(run.normal(4, 200))).astype(np.float32), run.empty(4)
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
