"""The replay computes every operation of the op log with the types and rounding of `tl`."""

import math
from typing import Any

import numpy as np
import pytest

from coordinator.verify.verdict import Verdict
from tests.support.op_logs import HBM, NUMPY, REGS, TCM, Array, Log

X = [-1.5, 0.0, 0.25, 3.0]
Y = [2.0, -0.5, 0.125, -7.0]


def verdict_of(
    name: str,
    inputs: list[Array | float],
    result: Array,
    *,
    engine: str = "pe_math",
    axis: int | None = None,
) -> Verdict:
    """The verdict on one operation on values that were loaded, whose result is copied to memory."""
    log, operands = Log(), list[Any]()
    for place, each in enumerate(inputs):
        if isinstance(each, np.ndarray):
            source = log.host_write(HBM + 4096 * place, each)
            operands.append(log.leave("pe_dma", "load", (source,), TCM + 4096 * place, each))
        else:
            operands.append(each)
    value = log.leave(engine, name, tuple(operands), TCM + 65536, result, axis=axis)
    log.leave("pe_dma", "store", (value,), HBM + 65536, result)
    return log.verdict()


def array(values: object, dtype: str = "f32") -> Array:
    return np.array(values).astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("exp", math.exp),
        ("sin", math.sin),
        ("cos", math.cos),
        ("tanh", math.tanh),
        ("abs", abs),
        ("relu", lambda x: max(x, 0.0)),
        ("floor", math.floor),
        ("ceil", math.ceil),
        ("round", round),
        ("exp2", lambda x: 2.0**x),
        ("erf", math.erf),
        ("sigmoid", lambda x: 1 / (1 + math.exp(-x))),
        ("silu", lambda x: x / (1 + math.exp(-x))),
        (
            "gelu",
            lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
    ],
)
def test_functions_of_one_operand_are_those_of_the_math_library(
    name: str, function: Any, dtype: str
):
    x = array(X, dtype)
    right = array([function(float(each)) for each in x], dtype)
    assert verdict_of(name, [x], right).passed
    assert not verdict_of(name, [x], right + array(0.125, dtype)).passed


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("log", math.log),
        ("log2", math.log2),
        ("sqrt", math.sqrt),
        ("rsqrt", lambda x: 1 / math.sqrt(x)),
    ],
)
def test_functions_of_positive_numbers(name: str, function: Any):
    x = array([0.25, 1.0, 2.0, 81.0])
    assert verdict_of(name, [x], array([function(each) for each in x.tolist()])).passed


def test_a_power():
    right = array([0.25, 3.0, 1.0, 2.0**-0.5])
    assert verdict_of(
        "pow", [array([2.0, 9.0, 0.0, 2.0]), array([-2.0, 0.5, 0, -0.5])], right
    ).passed


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8", "i32"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul", lambda a, b: a * b),
        ("maximum", max),
        ("minimum", min),
    ],
)
def test_functions_of_two_operands_broadcast(name: str, function: Any, dtype: str):
    a, b = array([[4], [-3]], dtype), array([[1, 2, 5]], dtype)
    right = array([[function(int(x), int(y)) for y in b[0]] for x in a[:, 0]], dtype)
    assert verdict_of(name, [a, b], right).passed
    assert not verdict_of(name, [a, b], right.T.copy()).passed


@pytest.mark.parametrize("dtype", ["i8", "i32"])
def test_functions_of_bits(dtype: str):
    a, b = array([12, -1, 7], dtype), array([10, 5, -8], dtype)
    assert verdict_of("bitwise_and", [a, b], array([8, 5, 0], dtype)).passed
    assert verdict_of("bitwise_or", [a, b], array([14, -1, -1], dtype)).passed
    assert verdict_of("bitwise_xor", [a, b], array([6, -6, -1], dtype)).passed


def test_a_quotient_a_clamp_and_a_fused_product():
    x, y, z = array(X), array(Y), array([1.0, 2.0, 3.0, 4.0])
    assert verdict_of("div", [x, y], array([-0.75, -0.0, 2.0, -3 / 7])).passed
    assert verdict_of("clamp", [x, -1.0, 2.0], array([-1.0, 0.0, 0.25, 2.0])).passed
    assert verdict_of("fma", [x, y, z], array([-2.0, 2.0, 3.03125, -17.0])).passed


def test_a_number_takes_the_type_of_the_elements_beside_it():
    # 0.1 is 0.0999755859375 in f16; times 3 it is exact in f32, and the result rounds once.
    right = array([float(np.float16(0.1)) * 3], "f16")
    assert verdict_of("mul", [array([3.0], "f16"), 0.1], right).passed


def test_sixteen_bit_operands_are_rounded_once_at_the_end():
    a, b = array([1.0, 2.0], "bf16"), array([2.0**-9, 2.0**-7], "bf16")
    # 1 + 2^-9 is between two numbers of 8 bits and nearer to 1.
    assert verdict_of("add", [a, b], array([1.0, 2.0], "bf16")).passed


def test_integers_wrap_around():
    assert verdict_of(
        "add", [array([100, -100], "i8"), array([100, -100], "i8")], array([-56, 56], "i8")
    ).passed
    assert verdict_of("mul", [array([2**30], "i32"), 4], array([0], "i32")).passed


@pytest.mark.parametrize(
    ("name", "axis", "result"),
    [
        ("sum", None, array(21.0)),
        ("sum", 0, array([5.0, 7.0, 9.0])),
        ("sum", -1, array([[6.0], [15.0]])),
        ("max", 1, array([3.0, 6.0])),
        ("min", 0, array([[1.0, 2.0, 3.0]])),
    ],
)
def test_reductions_keep_or_drop_their_axis_as_the_shape_of_the_result_shows(
    name: str, axis: int | None, result: Array
):
    assert verdict_of(name, [array([[1, 2, 3], [4, 5, 6]])], result, axis=axis).passed


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_running_sums_and_positions(dtype: str):
    x, wide = array([[1, 3, 2], [5, 5, 4]], dtype), "i32" if dtype == "i8" else dtype
    sums = array([[1, 4, 6], [5, 10, 14]], wide)
    assert verdict_of("cumsum", [x], sums, axis=1).passed
    assert verdict_of("cumsum", [x], array([[1, 3, 2], [6, 8, 6]], wide), axis=0).passed
    assert not verdict_of("cumsum", [x], sums, axis=0).passed
    # The first of two equal elements; without an axis, in row-major order.
    assert verdict_of("argmax", [x], array([1, 0], "i32"), axis=1).passed
    assert verdict_of("argmax", [x], array(3, "i32")).passed
    assert verdict_of("argmin", [x], array([[0, 0, 0]], "i32"), axis=0).passed


def test_a_selection_and_a_range():
    mask, right = array([True, False, True, False], "bool"), array([-1.5, 9.0, 0.25, 9.0])
    assert verdict_of("where", [mask, array(X), 9.0], right).passed
    assert verdict_of("where", [mask[:1], array(X), array(Y)], array(X)).passed
    assert not verdict_of("where", [mask, array(Y), 9.0], right).passed
    assert verdict_of("arange", [-2.0, 2.0], array([-2, -1, 0, 1], "i32")).passed
    assert not verdict_of("arange", [0.0, 4.0], array([-2, -1, 0, 1], "i32")).passed


def test_a_sum_of_small_integers_is_wide():
    assert verdict_of("sum", [array([100, 100, 100], "i8")], array(300, "i32")).passed
    assert (
        "replayed" in verdict_of("sum", [array([2**31 - 1, 1], "i32")], array(0, "i32")).problems[0]
    )


def test_a_sum_of_floats_is_rounded_once():
    ones = array([1.0] + [2.0**-12] * 16, "f16")
    # Added one by one in f16 they would vanish; together they are 2^-8.
    assert verdict_of("sum", [ones], array(1 + 2.0**-8, "f16")).passed


def test_softmax_and_what_moves_elements():
    x = array([[0.0, math.log(3)], [5.0, 5.0]])
    assert verdict_of("softmax", [x], array([[0.25, 0.75], [0.5, 0.5]]), axis=1).passed
    assert verdict_of("trans", [x], x.T.copy()).passed
    assert verdict_of("cat", [x, array([7.0])], np.append(x, np.float32(7))).passed
    assert verdict_of("full", [2.5], array([[2.5] * 3] * 2, "bf16")).passed


def test_a_cast_rounds_once_or_truncates_and_saturates():
    x = array([1 + 2.0**-12, 300.7, -1e9, math.nan])
    assert verdict_of("cast", [x], array([1.0, 300.75, -math.inf, math.nan], "f16")).passed
    assert verdict_of("cast", [x], array([1, 127, -128, 0], "i8")).passed
    assert verdict_of("cast", [array([2.0, 300.0], "f32")], array([2, 300], "i32")).passed


def test_a_bitcast_keeps_bits():
    x = array([1.0, -0.0])
    assert verdict_of("bitcast", [x], array([0x3F800000, -(2**31)], "i32")).passed
    assert not verdict_of("bitcast", [x], array([1, 0], "i32")).passed


@pytest.mark.parametrize(("dtype", "most"), [("f8e4m3", 448.0), ("f8e5m2", 57344.0)])
def test_types_of_8_bits_saturate(dtype: str, most: float):
    x, right = array([1e9, -math.inf, 3.25, math.nan]), array([most, -most, 3.25, math.nan], dtype)
    right[2] = 3.25 if dtype == "f8e4m3" else 3.0
    assert verdict_of("cast", [x], right).passed
    assert verdict_of("store", [x], right, engine="pe_fetch_store").passed
    assert verdict_of("full", [1e9], array([most], dtype)).passed
    large = array([most, most, 1.0], dtype)
    assert verdict_of("add", [large, 1e9], array([most, most, most], dtype)).passed
    assert verdict_of("sum", [large], array(most, dtype)).passed
    assert verdict_of("cumsum", [large], array([most] * 3, dtype), axis=0).passed
    assert not verdict_of("cast", [x], array([most, -math.inf, 3.25, 0.0], dtype)).passed


def test_the_store_port_rounds_an_accumulator_to_the_type_of_the_result():
    acc = array([1 + 2.0**-12, 65504.0])
    assert verdict_of("store", [acc], array([1.0, 65504.0], "f16"), engine="pe_fetch_store").passed


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8", "f8e4m3", "f8e5m2"])
def test_a_tile_product_adds_to_its_accumulator(dtype: str):
    a, b = array([[1, 2, 3], [4, 5, 6]], dtype), array([[1, -1], [2, 0], [0, 5]], dtype)
    acc = "i32" if dtype == "i8" else "f32"
    first = array([[5, 14], [14, 26]], acc)
    assert verdict_of("gemm", [a, b], first, engine="pe_gemm").passed
    assert verdict_of("gemm", [a, b, first], array(2 * first, acc), engine="pe_gemm").passed
    assert not verdict_of("gemm", [a, b, first], first, engine="pe_gemm").passed


def test_the_epilogue_of_a_product_adds_a_bias_of_another_type():
    log = Log()
    acc, bias = array([[1.0, 2.0], [3.0, 4.0]]), array([0.5, -8.0], "f16")
    loaded = log.host_write(TCM, acc), log.host_write(TCM + 4096, bias)
    sums = log.leave(
        "pe_math",
        "add",
        (log.leave("pe_fetch_store", "fetch", loaded[:1], REGS, acc), loaded[1]),
        REGS,
        acc + bias,
    )
    log.leave("pe_math", "relu", (sums,), REGS, np.maximum(acc + bias, 0))
    assert log.verdict().problems == ()


@pytest.mark.parametrize(
    ("name", "inputs", "result", "problem"),
    [
        (
            "expp",
            [array(X)],
            array(X),
            "engine pe_math has no operation 'expp'; did you mean 'exp'?",
        ),
        ("add", [array(X)], array(X), "it takes 2 operands, not 1"),
        ("add", [array(X), array(Y, "f16")], array(X, "i32"), "none of its operands is i32"),
        ("add", [array(X), array([1.0, 2.0])], array(X), "could not be broadcast"),
        ("exp", [array(X)], array([[1.0]]), "the result has shape (4,), the record has (1, 1)"),
        ("sum", [array(X)], array(0.0, "f16"), "the result is float32, the record has f16"),
        ("softmax", [array(X)], array(X, "f16"), "its operand is float32, its result f16"),
        ("trans", [array(X), array(Y)], array(X), "it takes 1 operands, not 2"),
        (
            "cat",
            [array(X), array(Y, "f16")],
            array(X * 2),
            "joins values of types float16, float32",
        ),
        ("full", [array(X)], array(X), "it takes one number"),
        ("arange", [1.0], array(X), "it takes two numbers"),
        ("where", [array(X), array(X), array(Y)], array(X), "it takes a block of bools and two"),
        (
            "where",
            [array([True], "bool"), array(X), array(Y, "f16")],
            array(X),
            "it chooses float16, its result is f32",
        ),
        ("exp", [1.0], array(1.0), "none of its operands is f32"),
        ("cast", [1.0], array(1.0), "it takes blocks of elements, not numbers"),
    ],
)
def test_an_operation_that_cannot_be_names_its_record_and_the_reason(
    name: str, inputs: Any, result: Array, problem: str
):
    verdict = verdict_of(name, inputs, result)
    assert not verdict.passed
    assert f"cube3.pe1.pe_math {name!r}" in verdict.problems[0]
    assert problem in verdict.problems[0]


def test_an_axis_that_does_not_exist_is_refused():
    for name in ("sum", "softmax", "cumsum", "argmax"):
        assert "has no axis 2" in verdict_of(name, [array(X)], array(X), axis=2).problems[0]


def test_products_that_do_not_exist_are_refused():
    square, wide = array([[1.0, 2.0], [3.0, 4.0]]), array([[1.0, 2.0, 3.0]])
    for operands in ([square, wide], [square, array(square, "f16")], [array(square, "i32")] * 2):
        assert (
            "does not exist" in verdict_of("gemm", operands, square, engine="pe_gemm").problems[0]
        )
    assert (
        "it accumulates on float32[1, 3]"
        in verdict_of("gemm", [square, square, wide], square, engine="pe_gemm").problems[0]
    )


def test_an_engine_that_computes_nothing_must_not_have_a_result():
    assert (
        "engine 'ucie' computes nothing"
        in verdict_of("send", [array(X)], array(X), engine="ucie").problems[0]
    )
