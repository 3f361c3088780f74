"""The passes of a chain, and what each of them fetches, computes and stores."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernbench import tl
from runtime.language.chain import Chain, ChainCall
from runtime.language.mock import MockPe
from runtime.language.value import Value
from tests.support.kernels import computed

F32 = tl.float32


def chain_of(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Chain:
    """The chain that a kernel hands to its PE for `function` on values of these shapes."""
    calls: list[ChainCall] = []
    run_chain = MockPe.run_chain

    def record(pe: MockPe, call: ChainCall) -> Any:
        calls.append(call)
        return run_chain(pe, call)

    def kernel() -> Value:
        operands = [tl.zeros(shape, F32) for shape in shapes]
        tl.fused(function, *operands)
        return operands[0]

    MockPe.run_chain = record
    try:
        computed(kernel)
    finally:
        MockPe.run_chain = run_chain
    [call] = calls
    return call.chain


def described(chain: Chain) -> list[dict[str, list[str]]]:
    """Every pass, with names of operations and letters for operands."""

    def name(number: int) -> str:
        sources = len(chain.sources)
        return chr(ord("a") + number) if number < sources else chain.step(number).name

    return [
        {
            part: [name(number) for number in numbers]
            for part, numbers in each._asdict().items()
            if numbers
        }
        for each in chain.plan.passes
    ]


def test_elementwise_operations_are_one_pass() -> None:
    chain = chain_of(lambda a, b: tl.exp(a * b) - a, (4, 8), (1, 8))
    assert described(chain) == [
        {"fetched": ["a", "b"], "stream": ["mul", "exp", "sub"], "streamed": ["sub"]}
    ]
    assert [chain.values[number].shape for number in chain.plan.kept] == [(1, 8)]


def online_softmax(s: Value, m: Value, l: Value) -> tuple[Value, ...]:  # noqa: E741 - of the paper
    m2 = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
    p, alpha = tl.exp2(s - m2), tl.exp2(m - m2)
    l2 = l * alpha + tl.sum(p, axis=1, keep_dims=True)
    return m2, l2, alpha, p.to(tl.float16)


def test_the_online_softmax_of_flash_attention_makes_two_passes() -> None:
    chain = chain_of(online_softmax, (128, 128), (128, 1), (128, 1))
    # a: the scores, b: the maxima so far, c: the sums so far.
    assert described(chain) == [
        {
            "fetched": ["a", "b", "c"],
            "stream": ["max"],
            "tail": ["maximum", "sub", "exp2", "mul"],
            "kept": ["maximum", "exp2"],
        },
        {
            "fetched": ["a"],
            "stream": ["sub", "exp2", "sum", "cast"],
            "tail": ["add"],
            "streamed": ["cast"],
            "kept": ["add"],
        },
    ]
    # Two operands, two results of reductions, and five results in the tails.
    assert [chain.values[number].shape for number in chain.plan.kept] == [(128, 1)] * 9


def test_a_wide_result_that_a_later_pass_needs_is_computed_again() -> None:
    def softmax(a: Value) -> Value:
        e = tl.exp(a - tl.max(a, axis=1, keep_dims=True))
        return e / tl.sum(e, axis=1, keep_dims=True)

    assert described(chain_of(softmax, (3, 200))) == [
        {"fetched": ["a"], "stream": ["max"]},
        {"fetched": ["a"], "stream": ["sub", "exp", "sum"]},
        {"fetched": ["a"], "stream": ["sub", "exp", "div"], "streamed": ["div"]},
    ]


def test_a_small_operand_is_fetched_with_the_first_pass_that_needs_it_and_kept() -> None:
    def scaled(a: Value, b: Value) -> Value:
        c = b * 2
        d = a - tl.sum(a, axis=0, keep_dims=True)
        return d * c + tl.sum(d * c)

    assert described(chain_of(scaled, (3, 200), (3, 1))) == [
        {"fetched": ["a"], "stream": ["sum"]},
        {"fetched": ["a", "b"], "stream": ["mul", "sub", "mul", "sum"]},
        {"fetched": ["a"], "stream": ["sub", "mul", "add"], "streamed": ["add"]},
    ]


def test_a_reduction_of_a_reduction_is_in_the_tail() -> None:
    def total(a: Value) -> tuple[Value, Value]:
        rows = tl.sum(a, axis=1)
        return rows, tl.sum(rows) / a.numel

    assert described(chain_of(total, (3, 200))) == [
        {"fetched": ["a"], "stream": ["sum"], "tail": ["sum", "div"], "kept": ["sum", "div"]}
    ]


def test_what_nothing_needs_is_left_out() -> None:
    def wasteful(a: Value, b: Value) -> Value:
        tl.exp(b)
        return a + 1

    assert described(chain_of(wasteful, (4,), (9,))) == [
        {"fetched": ["a"], "stream": ["add"], "streamed": ["add"]}
    ]


def test_values_that_the_function_captures_are_operands() -> None:
    def kernel() -> Value:
        x, y = tl.full((2, 3), 2.0, F32), tl.full((2, 3), 3.0, F32)
        return tl.fused(lambda: x * y + x)

    np.testing.assert_array_equal(computed(kernel), np.full((2, 3), 8.0, np.float32))


def test_chains_have_one_plan_if_shapes_types_and_operations_are_equal() -> None:
    plan = chain_of(lambda a, b: a + b, (4, 8), (4, 1)).plan
    assert chain_of(lambda a, b: a + b, (4, 8), (4, 1)).plan is plan
    others = [
        chain_of(lambda a, b: a * b, (4, 8), (4, 1)),
        chain_of(lambda a, b: b + a, (4, 8), (4, 1)),
        chain_of(lambda a, b: a + b, (4, 8), (1, 8)),
        chain_of(lambda a, b: (a + b, b * 2), (4, 8), (4, 1)),
        chain_of(lambda a, b: tl.sum(a + b, 1), (4, 8), (4, 1)),
        chain_of(lambda a, b: a.to(tl.float16) + b.to(tl.float16), (4, 8), (4, 1)),
    ]
    assert all(each.plan is not plan for each in others)
