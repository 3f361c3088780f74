"""A product that keeps rows of one matrix in TCM, while panels of the other one pass through."""

import numpy as np
import triton
import triton.language as tl

from tests.triton.cases import Launches, case


@triton.jit
def panel_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    N,
    K: tl.constexpr,
    ACROSS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PARTS: tl.constexpr,
):
    rows = (tl.program_id(0) // ACROSS) * BM * PARTS + tl.arange(0, BM)
    first = (tl.program_id(0) % ACROSS) * (N // ACROSS)
    k = tl.arange(0, K)
    a = ()
    for i in tl.static_range(PARTS):
        a = (*a, tl.load(a_ptr + (rows + i * BM)[:, None] * K + k[None, :]))
    for n in tl.range(first, first + N // ACROSS, BN):
        columns = n + tl.arange(0, BN)
        b = tl.load(b_ptr + columns[None, :] * K + k[:, None])
        for i in tl.static_range(PARTS):
            c = tl.dot(a[i], b).to(tl.float16)
            tl.store(c_ptr + (rows + i * BM)[:, None] * N + columns[None, :], c)


def panels(run: Launches, size: int, *, stages: int, down: int, across: int):
    a, b = (run.normal(size, size, dtype=np.float16) for _ in range(2))
    out = run.empty(size, size, dtype=np.float16)
    run.macs += size**3
    run(
        panel_kernel,
        (down * across,),
        *(run.put(a), run.put(b), out, size),
        K=size,
        ACROSS=across,
        BM=32,
        BN=32,
        PARTS=size // down // 32,
        num_stages=stages,
    )
    return [(out, a.astype(np.float64) @ b.astype(np.float64).T, 2e-3)]


@case("matmul, panels", "products")
def panel_matmul(run: Launches):
    return panels(run, 128, stages=2, down=2, across=2)
