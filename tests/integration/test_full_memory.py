"""A kernel reads and writes tensors behind more virtual addresses than 36 bits name."""

import numpy as np

from kernbench.simulation import simulate
from runtime import tl, torch
from runtime.language.value import Pointer

GIB = 1 << 30


def test_a_kernel_computes_at_the_end_of_768_gib_of_tensors() -> None:
    results: list[float] = []

    def kernel(x: Pointer, y: Pointer) -> None:
        tl.store(y, tl.load(x, 256) + 1)

    def program(_: int) -> None:
        kept = [torch.empty(2 * GIB) for _ in range(95)]
        x, y = torch.ones(256), torch.empty(256)
        assert x.data_ptr() > kept[-1].data_ptr() > 94 * 8 * GIB
        torch.launch("k", kernel, x, y)
        results.append(float(np.unique(y.numpy()).item()))

    simulate(program, 1, verify=True)
    assert results == [2.0]
