"""The operations that the kernel language refuses, and the messages of the errors."""

from collections.abc import Callable

import numpy as np
import pytest

from kernbench import tl
from runtime.language.value import Pointer, Value
from tests.support.kernels import refused

F32, F16, I8, I32 = tl.float32, tl.float16, tl.int8, tl.int32


def zeros(*shape: int, dtype: tl.DType = F32) -> Value:
    return tl.zeros(shape, dtype)


def at(x: np.ndarray | None = None) -> np.ndarray:
    return np.zeros((4, 4), np.float32) if x is None else x


OPERANDS = [
    (
        lambda: zeros(3, 4) + zeros(2, 4),
        (
            "add: shapes (3, 4) and (2, 4) do not broadcast: from the last axis on, lengths must "
            "be equal or 1"
        ),
    ),
    (
        lambda: zeros(3) * zeros(3, dtype=F16),
        "mul: operands have types f16, f32; they must be equal: convert with x.to(dtype)",
    ),
    (lambda: tl.add(1, 2), "add: operands have types none; one of them must be a value in TCM"),
    (lambda: tl.exp(2.0), "exp: operands have types none; one of them must be a value in TCM"),
    (lambda: zeros(2, dtype=I32) * 2.5, "mul: 2.5 beside a value of i32 is not an i32 itself"),
    (lambda: zeros(2, dtype=I8) + 128, "add: 128 beside a value of i8 is not an i8 itself"),
    (
        lambda: zeros(2, dtype=I8) + float("inf"),
        "add: inf beside a value of i8 is not an i8 itself",
    ),
    (
        lambda: zeros(2, dtype=I8) / zeros(2, dtype=I8),
        "div: not defined for i8, only for floating-point values",
    ),
    (
        lambda: tl.gelu(zeros(2, dtype=I32)),
        "gelu: not defined for i32, only for floating-point values",
    ),
    (
        lambda: tl.softmax(zeros(2, dtype=I32)),
        "softmax: not defined for i32, only for floating-point values",
    ),
    (
        lambda: zeros(2) + "1",
        "add: str '1' is neither a value in TCM, such as tl.load returns, nor a number",
    ),
    (
        lambda: zeros(1) + np.ones(1),
        "add: ndarray array([1.]) is neither a value in TCM, such as tl.load returns, nor a number",
    ),
    (
        lambda: tl.sum(zeros(2, 3), axis=2),
        "sum: axis 2 does not exist in a value of shape (2, 3): axes are -2 to 1",
    ),
    (
        lambda: tl.max(tl.sum(zeros(2)), axis=0),
        "max: axis 0 does not exist in a value of shape (): it has no axis",
    ),
    (lambda: tl.sum(zeros(2), axis=1.0), "sum: axis 1.0 is not an integer"),
    (
        lambda: tl.min(zeros(2, 0), axis=1),
        "min: no element along axis 1 of a value of shape (2, 0)",
    ),
    (lambda: tl.softmax(zeros(0)), "softmax: no element along axis -1 of a value of shape (0,)"),
    (
        lambda: tl.trans(zeros(2, 2, 2)),
        "trans: a value of shape (2, 2, 2) has 3 axes; only a matrix, of 2, is transposed",
    ),
    (
        lambda: tl.cat([zeros(2), zeros(2, dtype=I8)]),
        "cat: operands have types f32, i8; they must be equal: convert with x.to(dtype)",
    ),
    (lambda: tl.cat([]), "cat: operands have types none; one of them must be a value in TCM"),
    (
        lambda: tl.cat([zeros(2), 1]),
        "tl.cat takes a value in TCM, such as tl.load returns, not int 1",
    ),
    (
        lambda: zeros(2).to(np.float32),
        "cast: <class 'numpy.float32'> is not an element type such as tl.float32",
    ),
    (lambda: tl.full(2, 300, I8), "full: 300.0 for a value of i8 is not an i8 itself"),
    (lambda: tl.full(2, "x", I8), "full: str 'x' is not a number"),
    (lambda: tl.zeros((2, -1), F32), "shape (2, -1): a length cannot be negative"),
    (
        lambda: tl.zeros((2.0, 3), F32),
        "shape (2.0, 3): a shape is an integer or a tuple of integers",
    ),
    (lambda: tl.zeros(None, F32), "shape None: a shape is an integer or a tuple of integers"),
]


@pytest.mark.parametrize(("kernel", "problem"), OPERANDS)
def test_operands_that_do_not_fit_are_named(kernel: Callable[[], object], problem: str) -> None:
    assert refused(kernel) == problem


VALUES = [
    (lambda: zeros(4)[0], "a value in TCM is indexed with slices and None, not 0"),
    (lambda: zeros(4)[::2], "a value in TCM can be sliced with step 1 only, not 2"),
    (lambda: zeros(4)[:, :], "a value of shape (4,) has 1 axes, more are indexed"),
]


@pytest.mark.parametrize(("kernel", "problem"), VALUES)
def test_an_undefined_operation_on_values_is_refused(
    kernel: Callable[[], object], problem: str
) -> None:
    assert refused(kernel) == problem


OVERLAP = (
    "elements overlap; strides count elements, and for a block of rows they are (row pitch, 1)"
)
MEMORY = [
    (
        lambda x: tl.load(3, 4),
        "tl.load takes a pointer, as a tensor is passed to a kernel, not int 3",
    ),
    (
        lambda x: tl.load(x, (2, 2, 2), strides=(4, 1)),
        "strides (4, 1) with shape (2, 2, 2): one stride for each axis",
    ),
    (
        lambda x: tl.load(x, (2, 2), strides=(-2, 1)),
        "strides (-2, 1): a DMA descriptor has no negative pitches",
    ),
    (
        lambda x: tl.load(x, (2, 2), strides=("a", 1)),
        "strides ('a', 1): strides are integers, one for each axis",
    ),
    (lambda x: tl.load(x, (2, 3), strides=(2, 1)), "strides (2, 1) with shape (2, 3): " + OVERLAP),
    (lambda x: tl.load(x, (3, 2), strides=(1, 2)), "strides (1, 2) with shape (3, 2): " + OVERLAP),
    (
        lambda x: tl.load(x, (2, 2, 2, 2), strides=(100, 40, 10, 1)),
        (
            "strides (100, 40, 10, 1) with shape (2, 2, 2, 2): a DMA descriptor holds rows, at a "
            "pitch, in planes at a second pitch; this block has 3 pitches"
        ),
    ),
    (
        lambda x: tl.store(x, 5.0),
        "tl.store takes a value in TCM, such as tl.load returns, not float 5.0",
    ),
    (
        lambda x: tl.store(zeros(2), zeros(2)),
        (
            "tl.store takes a pointer, as a tensor is passed to a kernel, "
            "not Value Value(shape=(2,), dtype=f32)"
        ),
    ),
    (
        lambda x: tl.store(x, zeros(2, dtype=F16)),
        "store of f16 through a pointer to f32: convert with x.to(dtype) before",
    ),
    (lambda x: tl.ref(x, (2, 2, 2)), "tl.ref of shape (2, 2, 2): a matrix has 2 axes"),
    (
        lambda x: tl.ref(x, (2, 2), (4, 1), blocked=True),
        "tl.ref with strides (4, 1) and blocked: the tiles of a blocked matrix have no gaps",
    ),
    (lambda x: tl.program_id(2), "axis 2: programs have axis 0 (PE in its cube) and axis 1 (cube)"),
    (
        lambda x: tl.num_programs(-1),
        "axis -1: programs have axis 0 (PE in its cube) and axis 1 (cube)",
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), MEMORY)
def test_blocks_that_do_not_exist_are_refused(kernel: Callable[..., object], problem: str) -> None:
    assert refused(kernel, at()) == problem


GEMMS = [
    (
        lambda x: tl.dot(zeros(2, 3), zeros(2, 3)),
        "gemm: a (2, 3) and b (2, 3) do not match: the columns of a must be the rows of b",
    ),
    (
        lambda x: tl.dot(zeros(2), zeros(2, 3)),
        "gemm: a has shape (2,); it must be a matrix with at least one element",
    ),
    (
        lambda x: tl.dot(zeros(2, 0), zeros(0, 3)),
        "gemm: a has shape (2, 0); it must be a matrix with at least one element",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), 3),
        "gemm: b is a value in TCM (tl.load) or a matrix in memory (tl.ref), not int 3",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), zeros(2, 2, dtype=F16)),
        "gemm: a is f32 and b is f16; they must be equal: convert with x.to(dtype)",
    ),
    (
        lambda x: tl.dot(zeros(2, 2, dtype=I32), zeros(2, 2, dtype=I32)),
        "gemm: operands are i32; the engine multiplies f16, bf16, f32, f8e4m3, f8e5m2 and i8 only",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), zeros(2, 3), zeros(2, 2)),
        "gemm: acc has shape (2, 2); the product has (2, 3)",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), zeros(2, 2), zeros(2, 2, dtype=F16)),
        "gemm: acc is f16; these operands are summed in f32",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), zeros(2, 2), 0),
        "gemm: acc is a value in TCM or None, not int 0",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), zeros(2, 2), out_dtype=I8),
        "gemm: a result of i8 from a sum in f32: it must be a floating-point type too",
    ),
    (
        lambda x: tl.dot(zeros(2, 2), zeros(2, 2), out_dtype="f16"),
        "gemm: out_dtype 'f16' is not an element type such as tl.float16",
    ),
    (
        lambda x: tl.composite("conv", zeros(2, 2), zeros(2, 2)),
        "tl.composite of kind 'conv': the scheduler has no such plan; known: gemm",
    ),
    (
        lambda x: tl.composite("gem", zeros(2, 2), zeros(2, 2)),
        "tl.composite of kind 'gem': the scheduler has no such plan; did you mean 'gemm'?",
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2), zeros(2, 2), x),
        (
            "gemm: out is a matrix in memory (tl.ref), a value in TCM or None, not Pointer "
            f"{Pointer(0x1_0000_0000, F32)!r}"
        ),
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2), zeros(2, 2), tl.ref(x, (2, 3))),
        "gemm: out has shape (2, 3); the product has (2, 2)",
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2), zeros(2, 2), tl.ref(x, (2, 2)), out_dtype=F16),
        "gemm: out is f32 and out_dtype f16; with out, omit out_dtype",
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2), zeros(2, 3), bias=zeros(2)),
        "gemm: bias has shape (2,); a product of shape (2, 3) takes (3,) or (1, 3)",
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2), zeros(2, 3), bias=1.0),
        "gemm: bias is a value in TCM or None, not float 1.0",
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2), zeros(2, 2), activation="gellu"),
        "gemm: activation 'gellu' is not known; did you mean 'gelu'?",
    ),
    (
        lambda x: tl.composite(
            "gemm", zeros(2, 2, dtype=I8), zeros(2, 2, dtype=I8), activation="gelu"
        ),
        "gemm: activation gelu is not defined for a sum in i32; relu is",
    ),
    (
        lambda x: tl.composite("gemm", zeros(2, 2, dtype=I8), zeros(2, 2, dtype=I8), bias=zeros(2)),
        "gemm: bias is f32; a sum in i32 takes a bias of i8 or i32",
    ),
    (
        lambda x: tl.wait(zeros(2)),
        (
            "tl.wait takes a result of tl.load_async, tl.store_async, tl.fused_async, "
            "tl.composite or tl.recv_async, not Value Value(shape=(2,), dtype=f32)"
        ),
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), GEMMS)
def test_products_that_the_engine_cannot_do_are_refused(
    kernel: Callable[..., object], problem: str
) -> None:
    assert refused(kernel, at()) == problem


QUEUES = [
    (lambda x: tl.send("E", zeros(2)), "no queue in direction 'E' is installed here"),
    (lambda x: tl.send("E", 5), "tl.send takes a value in TCM, such as tl.load returns, not int 5"),
    (lambda x: tl.send(1, zeros(2)), "tl.send takes a direction such as 'E', not int 1"),
    (lambda x: tl.recv("S", 2, F32), "no queue in direction 'S' is installed here"),
    (lambda x: tl.recv(None, 2, F32), "recv from any direction: no queue is installed here"),
    (lambda x: tl.recv("E"), "tl.recv needs the shape of the value that was sent"),
    (
        lambda x: tl.recv("E", 2),
        "tl.recv takes an element type such as tl.float16, not NoneType None",
    ),
    (
        lambda x: tl.recv("E", 2, F32, dst_space="tcm"),
        "tl.recv with dst_space 'tcm' needs dst_addr, the target of the copy",
    ),
    (
        lambda x: tl.recv("E", 4, F32, dst_addr=x, dst_space="tcm"),
        "tl.recv: dst_addr is a pointer to memory, so dst_space is 'hbm', not 'tcm'",
    ),
    (
        lambda x: tl.recv("E", dst_addr=zeros(2), dst_space="hbm"),
        "tl.recv: dst_addr is a value in TCM, so dst_space is 'tcm', not 'hbm'",
    ),
    (
        lambda x: tl.recv("E", 3, F32, dst_addr=zeros(2)),
        "tl.recv of shape (3,) over a value of shape (2,); they must be equal",
    ),
    (
        lambda x: tl.recv("E", 2, F16, dst_addr=zeros(2)),
        "tl.recv of f16 to elements of f32; they must be equal",
    ),
    (
        lambda x: tl.recv("E", 2, I8, dst_addr=x),
        "tl.recv of i8 to elements of f32; they must be equal",
    ),
    (
        lambda x: tl.recv("E", 2, F16, dst_addr=7),
        "tl.recv: dst_addr is a value in TCM or a pointer to memory, not int 7",
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), QUEUES)
def test_messages_that_cannot_be_sent_or_received_are_refused(
    kernel: Callable[..., object], problem: str
) -> None:
    assert refused(kernel, at()) == problem
