"""Matrix products of device tensors: `matmul` and `mm`.

Operands and results that are row-major in their memory have the plans of all products of the device
(`product_launch`). Where a placement of the result or of an operand decides, a product is one
launch: every PE computes blocks of the result and reads its operands through their virtual
addresses, wherever they lie; panels of them are loaded once into TCM and used for many tiles
(`product_plan`). Products are summed in float32, or in int32 for int8, and rounded once to the type
of the operands, which is PyTorch's type of the result.
"""

from collections.abc import Sequence
from math import prod
from typing import TypeVar

from runtime.core.dtypes import DType, bfloat16, float16, float32, int8, int32
from runtime.core.requests import PerPe
from runtime.device.kernels.products import ProductOperand, ProductTask, ResultMatrix, multiply
from runtime.device.launches.block_copy import flat_copy
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.operations.product_call import ProductCall, own_memory
from runtime.device.operations.product_launch import launch_product
from runtime.device.products.matmul_shape import MatmulShape
from runtime.device.products.product_blocks import ResultBlock, block_plans, blocks_of
from runtime.device.products.product_operands import product_operand
from runtime.device.regions.regions import Pe
from runtime.language.value import Pointer
from runtime.model.placement import Placement

T = TypeVar("T", bound=DeviceTensor)
_TYPES = (float16, bfloat16, float32, int8)
"""The types that the GEMM engine multiplies."""


def matmul(
    input: T,  # noqa: A002 - PyTorch's name
    other: T,
    *,
    bias: T | None = None,
    transpose_input: bool = False,
    transpose_other: bool = False,
    dp: Placement | None = None,
    out: T | None = None,
) -> T:
    """The matrix product of `input` (..., m, k) and `other` (k, n), on as many PEs as help.

    A vector is a row of `input` or a column of `other`, without that axis in the result. `out` is a
    flat tensor of the shape and type of the result, which is written to it. The other
    four arguments are kernbench's own: `bias` (n,) is added to every row before the one rounding;
    an operand of two axes can be transposed, panel by panel in TCM; `dp` places the result, and
    each PE of it computes the elements that it holds. Without `dp` the result is placed as any new
    tensor, and the blocks are on the PEs that hold whole columns of `other` or rows of `input`,
    else in a grid over all PEs.

    The call returns at once, like a launch. An operand whose sums are divided over PEs, such as
    `other` placed row by row and column by column at once, is first copied to a flat tensor.
    `RuntimeError` as in PyTorch for shapes and types that do not match.
    """
    for position, operand in enumerate((input, other), start=1):
        if not isinstance(operand, DeviceTensor):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
            name = ("input", "other")[position - 1]
            problem = f"must be Tensor, not {type(operand).__name__}"
            raise TypeError(f"matmul(): argument '{name}' (position {position}) {problem}")
    product = MatmulShape.of(input, other, transpose_a=transpose_input, transpose_b=transpose_other)
    _check_types(input, other)
    _check_bias(bias, product.n, input.dtype)
    if out is None:
        result = _new(input, product.shape, dp)
    else:
        result = out
        _check_target(out, product, input)
    if not result.numel():
        return result
    if not product.k:
        return result.copy_(0 if bias is None else bias)
    a = _operand(input, product.stored_a, free_in_rows=not transpose_input, used_in_rows=True)
    b = _operand(other, product.stored_b, free_in_rows=transpose_other, used_in_rows=False)
    row = (
        None
        if bias is None
        else _operand(bias, (1, product.n), free_in_rows=False, used_in_rows=False)
    )
    blocks = blocks_of(product, result, a, b, by_owner=dp is not None)
    if blocks is not None:
        _launch(product, result, a, b, row, blocks)
        return result
    left = _matrix(a[0], product.stored_a, is_turned=transpose_input)
    right = _matrix(b[0], product.stored_b, is_turned=transpose_other)
    out_matrix = _matrix(result, (product.m, product.n), is_turned=False)
    added = None if row is None else StridedWindow.of(row[0])
    # The elements do not depend on placements.
    launch_product(ProductCall(left, right, out_matrix, added, own_memory(result), in_order=True))
    return result


def mm(input: T, mat2: T) -> T:  # noqa: A002 - PyTorch's name
    """The product of two matrices, `matmul` without vectors and folded axes."""
    for name, operand in (("self", input), ("mat2", mat2)):
        if isinstance(operand, DeviceTensor) and len(operand.shape) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RuntimeError(f"{name} must be a matrix")
    return matmul(input, mat2)


def _check_types(a: DeviceTensor, b: DeviceTensor) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {a.dtype!r} != {b.dtype!r}"
        )
    if a.dtype not in _TYPES:
        known = ", ".join(repr(dtype) for dtype in _TYPES)
        raise RuntimeError(f"matmul: the GEMM engine multiplies {known}, not {a.dtype!r}")


def _check_bias(bias: DeviceTensor | None, n: int, dtype: DType) -> None:
    if bias is None:
        return
    if bias.shape != (n,):
        raise RuntimeError(f"matmul: the bias has shape {bias.shape}; the product takes {(n,)}")
    if bias.dtype != dtype:
        raise RuntimeError(f"matmul: the bias is {bias.dtype!r}, the operands are {dtype!r}")


def _check_target(out: DeviceTensor, product: MatmulShape, a: DeviceTensor) -> None:
    if (out.shape, out.dtype) != (product.shape, a.dtype) or not out.is_flat:
        raise RuntimeError(
            f"matmul: out is {out.dtype!r} of shape {out.shape}; the result is {a.dtype!r} of "
            f"shape {product.shape}, and out must be in row-major order in its memory"
        )


def _new(a: T, shape: tuple[int, ...], dp: Placement | None) -> T:
    return a.new(shape, a.dtype) if dp is None else type(a).allocate(shape, a.dtype, dp, a.state)


def _operand(
    tensor: DeviceTensor, stored: tuple[int, int], *, free_in_rows: bool, used_in_rows: bool
) -> tuple[DeviceTensor, ProductOperand]:
    """The operand, and the tensor that it is in: a flat copy where the depth is divided."""
    operand = product_operand(tensor, stored, free_in_rows=free_in_rows, used_in_rows=used_in_rows)
    if operand is None:
        tensor = flat_copy(tensor, stored)
        operand = product_operand(
            tensor, stored, free_in_rows=free_in_rows, used_in_rows=used_in_rows
        )
        assert operand is not None, "a flat tensor is one piece"
    return tensor, operand


def _matrix(tensor: DeviceTensor, stored: tuple[int, int], *, is_turned: bool) -> StridedWindow:
    """A flat tensor as a batch of one matrix, whose memory has the shape `stored`."""
    (rows, columns), whole = stored, prod(stored)
    if is_turned:
        return StridedWindow(tensor, (1, columns, rows), (whole, 1, columns))
    return StridedWindow(tensor, (1, rows, columns), (whole, columns, 1))


def _launch(
    product: MatmulShape,
    result: DeviceTensor,
    a: tuple[DeviceTensor, ProductOperand],
    b: tuple[DeviceTensor, ProductOperand],
    bias: tuple[DeviceTensor, ProductOperand] | None,
    blocks: Sequence[tuple[Pe, ResultBlock]],
) -> None:
    start = Pointer(result.address, result.dtype)
    spans = [(block.rows, block.columns) for _, block in blocks]
    plans = block_plans(spans, a[1], b[1], (product.k, result.itemsize))
    tensors = [result, a[0], b[0]] + ([] if bias is None else [bias[0]])
    sums = None
    if any(len(plan.depths) > 1 for plan in plans):
        whole = result.new((product.m, product.n), int32 if result.dtype == int8 else float32)
        tensors.append(whole)
        sums = ResultMatrix(Pointer(whole.address, whole.dtype), product.n)
    tasks: dict[Pe, list[ProductTask]] = {}
    for turn, ((pe, block), plan) in enumerate(zip(blocks, plans, strict=True)):
        matrix = ResultMatrix(start + block.origin, block.pitch)
        tasks.setdefault(pe, []).append(ProductTask(plan, matrix, turn))
    arguments = (
        PerPe({pe: tuple(each) for pe, each in tasks.items()}),
        a[1],
        b[1],
        None if bias is None else bias[1],
        sums,
    )
    launch_on("matmul", multiply, arguments, tensors, sorted(tasks), local=True)
