"""Random kernels with operations in flight, against the same kernels that wait for each at once.

Data are the same on the chip, in the mock runtime and in the replay of the op log. A kernel with
operations in flight is never slower, and never faster than the work of its busiest engine.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernbench import tl
from runtime.language.value import Pointer, Value
from tests.support.one_pe import OnePe, run_on_one_pe

BLOCKS, SIDE = 6, 64
BLOCK = SIDE * SIDE


class RandomKernel:
    """Steps on blocks of two tensors, drawn from a seed; `at_once` waits for each operation.

    A kernel keeps three values, which steps write over, and starts with a load of each.
    """

    def __init__(self, seed: int, *, at_once: bool) -> None:
        self._seed, self._at_once = seed, at_once

    def __call__(self, x: Pointer, y: Pointer) -> None:
        """The kernel."""
        draw, pending = Random(self._seed), dict[int, Any]()
        kept = [self._after(tl.load_async(x + i * BLOCK, (SIDE, SIDE))).wait() for i in range(3)]
        for step in range(draw.randint(3, 10)):
            a, b = draw.sample(kept, 2)
            block = draw.randrange(BLOCKS)
            kind = draw.choice(("load", "store", "chain", "product", "alone", "scope"))
            if kind == "store" and block in pending:
                pending.pop(block).wait()
            match kind:
                case "load":
                    self._after(tl.load_async(x + block * BLOCK, (SIDE, SIDE), out=a))
                case "store":
                    pending[block] = self._after(tl.store_async(y + block * BLOCK, a))
                case "chain":
                    self._after(tl.fused_async(self._chain(draw.random() < 0.5), a, b, out=a))
                case "product":
                    left, right = (each.to(tl.float16) for each in (a, b))
                    self._after(tl.composite("gemm", left, right, a, acc=a))
                case "alone":
                    kept[step % 3] = tl.maximum(a, b) * 0.5
                case _:
                    with tl.scratch():
                        total = self._after(tl.fused_async(lambda a: tl.sum(a, axis=1), a))
                        tl.store(y + (BLOCKS + step) * BLOCK, total.wait())
        for i, value in enumerate(kept):
            self._after(tl.store_async(y + (2 * BLOCKS + 10 + i) * BLOCK, value))

    def _after(self, pending: Any) -> Any:
        if self._at_once:
            pending.wait()
        return pending

    def _chain(self, reduces: bool) -> Callable[[Value, Value], Value]:
        if reduces:
            return lambda a, b: tl.tanh(a - tl.max(b, axis=1, keep_dims=True))
        return lambda a, b: tl.minimum(tl.abs(a) * 0.25, b)


def run(seed: int, *, at_once: bool) -> OnePe:
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((BLOCKS, BLOCK)).astype(np.float32)
    return run_on_one_pe(
        RandomKernel(seed, at_once=at_once),
        [x, np.zeros((2 * BLOCKS + 13, BLOCK), np.float32)],
        pe__dma__channels=1 + seed % 3,
    )


def busiest_ps(done: OnePe) -> int:
    """The time of the records of the vector engine, or of the GEMM engine, whichever is longer."""
    engines = ("pe_math", "pe_gemm")
    totals = (
        sum(record.end_ps - record.start_ps for _, record in done.world.of(engine))
        for engine in engines
    )
    return max(totals)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30))
def test_operations_in_flight_change_no_data_and_cost_no_time(seed: int) -> None:
    at_once, in_flight = run(seed, at_once=True), run(seed, at_once=False)
    assert in_flight.arrays[1].tobytes() == at_once.arrays[1].tobytes()
    assert busiest_ps(in_flight) <= in_flight.kernel_ps <= at_once.kernel_ps
