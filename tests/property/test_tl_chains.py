"""Random chains: the bits of their operations one by one, the same numbers as numpy, no more time.

An engine with a pipeline that needs no fill and a tree of no levels is no better off with several
passes than with several operations, so the times are compared on the file that ships.
"""

from collections.abc import Callable
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernbench import tl
from runtime.language.value import Pointer, Value
from tests.support.one_pe import OnePe, run_on_one_pe

FLOATS = (tl.float32, tl.float16, tl.bfloat16)
UNARY = ("abs", "relu", "exp", "tanh", "sigmoid")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
_NUMPY: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
}


class RandomChain:
    """A function of values, drawn from a seed; with numpy arrays it computes in float64."""

    def __init__(self, seed: int) -> None:
        draw = Random(seed)
        self.rows, self.columns = draw.randint(1, 6), draw.choice((1, 5, 40, 129, 300))
        self.shapes = [
            draw.choice(((self.rows, self.columns), (self.rows, 1), (1, self.columns)))
            for _ in range(draw.randint(1, 3))
        ]
        self._seed = draw.random()
        self._length = draw.randint(1, 8)
        self.dtype = draw.choice(FLOATS)

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The values that the chain returns: the last one, and some before it."""
        draw, values = Random(self._seed), list(operands)
        for _ in range(self._length):
            kind, x = draw.random(), draw.choice(values)
            if kind < 0.35:
                values.append(self._apply(draw.choice(UNARY), self._apply("mul", x, 0.25)))
            elif kind < 0.7:
                values.append(self._apply(draw.choice(BINARY), x, draw.choice((*values, 0.5))))
            else:
                axis = draw.choice((0, 1))
                values.append(self._reduce(draw.choice(("sum", "max", "min")), x, axis))
        computed = values[len(operands) :]
        chosen = [each for each in computed[:-1] if draw.random() < 0.3]
        return (*chosen, computed[-1])

    def _apply(self, name: str, *operands: Any) -> Any:
        on_tl = any(isinstance(each, Value) for each in operands)
        return (getattr(tl, name) if on_tl else _NUMPY[name])(*operands)

    def _reduce(self, name: str, x: Any, axis: int) -> Any:
        if isinstance(x, Value):
            return getattr(tl, name)(x, axis=axis, keep_dims=True)
        return _NUMPY[name](x, axis=axis, keepdims=True)

    def arrays(self) -> list[np.ndarray]:
        """The operands, one after the other in one array, and room for every result."""
        rng = np.random.default_rng(self.rows)
        operands = rng.standard_normal(sum(map(prod, self.shapes)))
        return [operands.astype(self.dtype.numpy), np.zeros(20_000, self.dtype.numpy)]

    def kernel(self, compute: Callable[..., Any]) -> Callable[[Pointer, Pointer], None]:
        """Load the operands, compute, store every value that the chain returns."""

        def run(x: Pointer, y: Pointer) -> None:
            values: list[Value] = []
            for shape in self.shapes:
                values.append(tl.load(x, shape))
                x += prod(shape)
            for each in compute(*values):
                tl.store(y, each)
                y += each.numel

        return run


def fused(chain: RandomChain) -> OnePe:
    return run_on_one_pe(chain.kernel(lambda *x: tl.fused(chain, *x)), chain.arrays())


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30))
# A result of one vector is stored in no time, before the reduction beside it has ended.
@example(19685680)
def test_a_chain_has_the_bits_of_its_operations_one_by_one(seed: int) -> None:
    chain = RandomChain(seed)
    one_by_one = run_on_one_pe(chain.kernel(chain), chain.arrays(), mocked=False)
    assert fused(chain).arrays[1].tobytes() == one_by_one.arrays[1].tobytes()
    without = run_on_one_pe(
        chain.kernel(lambda *x: tl.fused(chain, *x)), chain.arrays(), data=False
    )
    assert without.kernel_ps == fused(chain).kernel_ps


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from((*UNARY, *BINARY, "sum", "max", "where", "cast")),
    st.sampled_from((*FLOATS, tl.float64)),
    st.tuples(st.integers(1, 4), st.integers(1, 700)),
    st.booleans(),
)
def test_a_chain_of_one_operation_takes_its_time(
    name: str, dtype: tl.DType, shape: tuple[int, int], repeated: bool
) -> None:
    def operation(a: Value, b: Value) -> Value:
        match name:
            case "sum" | "max":
                return getattr(tl, name)(a, axis=1)
            case "where":
                return tl.where(a > b, a, b)
            case "cast":
                return a.to(tl.float16)
        return getattr(tl, name)(*(a, b)[: 1 + (name in BINARY)])

    def kernel(compute: Callable[[Value, Value], Value]) -> Callable[[Pointer], None]:
        def run(x: Pointer) -> None:
            compute(tl.load(x, shape), tl.load(x, (1, shape[1]) if repeated else shape))

        return run

    given_array = [np.ones(shape, dtype.numpy)]
    alone = run_on_one_pe(kernel(operation), given_array)
    chain = run_on_one_pe(kernel(lambda a, b: tl.fused(operation, a, b)), given_array)
    if name == "where":
        # Two operations, and the mask between them is neither stored nor fetched.
        assert chain.kernel_ps < alone.kernel_ps
    else:
        assert chain.kernel_ps == alone.kernel_ps
