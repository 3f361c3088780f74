"""Matrix products: one launch of blocked products on all PEs that help, for a batch as well.

An operand may have any pitch and may be transposed, without a copy. A product of two matrices takes
the plan with the least estimated time (`product_choice`): blocks, parts of the depth that another
launch adds, a copy of one operand in each cube, or a grid of cubes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import compute
from kernbench.torch_backend.aten.operators import CALLS, operator
from kernbench.torch_backend.launching.cube_launch import cube_grid, launch_in_cubes
from kernbench.torch_backend.launching.gather_launch import (
    gather_machine,
    launch_gathered,
    matrix_in_memory,
)
from kernbench.torch_backend.launching.joined_launch import JoinedCall, launch_joined
from kernbench.torch_backend.launching.launches import window_of
from kernbench.torch_backend.launching.product_launch import (
    ProductCall,
    launch_products,
    launch_products_together,
)
from kernbench.torch_backend.launching.rowwise_launch import sum_of_parts
from kernbench.torch_backend.runtime.pytorch_api import cut
from runtime.device.products.product_choice import ProductMatrices, product_choice
from runtime.device.products.product_plan import ProductSize

_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
"""The types of PyTorch whose products the GEMM engine computes with PyTorch's rounding."""
_Scaled = tuple[Tensor, float]
"""A tensor and its factor."""


@operator("mm.out", types=_TYPES)
def _mm(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    return _product(a, b, None, out)


@operator("addmm.out", types=_TYPES)
def _addmm(
    bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1, out: Tensor
) -> Tensor:
    if beta == alpha == 1 and bias.dim() == 1 and bias.shape[0] == b.shape[1]:
        return _product(a, b, bias, out)
    return _scaled_sum("addmm", (bias, beta), (torch.mm(a, b), alpha), out)


@operator("_int_mm", types=frozenset({torch.int8}))
def _int_mm(a: Tensor, b: Tensor) -> Any:
    """A product of int8, with sums in int32; errors of shapes are those of the host."""
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        return NotImplemented
    out = torch.empty((a.shape[0], b.shape[1]), dtype=torch.int32, device=a.device)
    if not out.numel() or not a.shape[1]:
        return out.zero_()
    launch_products(ProductCall(a.unsqueeze(0), b.unsqueeze(0), out.unsqueeze(0)))
    return out


@operator("bmm.out", types=_TYPES)
def _bmm(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    return _products(a, b, None, out)


@operator("baddbmm.out", types=_TYPES)
def _baddbmm(
    x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1, out: Tensor
) -> Tensor:
    return _scaled_sum("baddbmm", (x, beta), (torch.bmm(a, b), alpha), out)


@operator("mv", types=_TYPES)
def _mv(a: Tensor, b: Tensor) -> Tensor:
    return torch.mm(a, b.unsqueeze(1)).squeeze(1)


@operator("dot", types=_TYPES)
def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum()


def _scaled_sum(name: str, addend: _Scaled, product: _Scaled, out: Tensor) -> Tensor:
    (x, beta), (y, alpha) = addend, product
    if not beta:
        # Then a NaN of the addend has no effect.
        return compute(name, lambda y, by: y * by, (y, alpha), out)
    return compute(name, lambda x, beta, y, by: x * beta + y * by, (x, beta, y, alpha), out)


def _product(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    shape = (a.shape[0], b.shape[1])
    if out.shape != shape:
        out.resize_(shape)
    _products(a.unsqueeze(0), b.unsqueeze(0), bias, out.unsqueeze(0))
    return out


def _products(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    shape = (a.shape[0], a.shape[1], b.shape[2])
    if out.shape != shape:
        out.resize_(shape)
    if not out.numel():
        return out
    if not a.shape[2]:
        return out.zero_() if bias is None else out.copy_(bias)
    _, pitch, across = out.stride()
    in_rows = (across == 1 or shape[2] == 1) and (pitch >= shape[2] or shape[1] == 1)
    target = out if in_rows else torch.empty(shape, dtype=out.dtype, device=out.device)
    if shape[0] == 1:
        _multiply(a[0], b[0], bias, target[0])
    else:
        launch_products(ProductCall(a, b, target, bias))
    return out if target is out else out.copy_(target)


def products_together(calls: Sequence[JoinedCall]) -> None:
    """Independent sums of products, and functions of them. Those without another plan are one
    launch.
    """
    rest, together = list[JoinedCall](), list[JoinedCall]()
    for call in calls:
        blocked = all(
            _is_in_blocks(a, b, call.bias, _product_memory(call)) for a, b in call.factors
        )
        (together if blocked else rest).append(call)
    CALLS["mm.out"] += sum(len(call.factors) for call in together)
    if not together or launch_joined(together):
        together = []
    products = [_product_memory(call) for call in (*together, *rest)]
    firsts = [
        ProductCall(a.unsqueeze(0), b.unsqueeze(0), out.unsqueeze(0), call.bias)
        for call, out in zip(together, products, strict=False)
        for a, b in call.factors[:1]
    ]
    if firsts:
        launch_products_together(firsts)
    for number, (call, product) in enumerate(zip((*together, *rest), products, strict=True)):
        (a, b), *others = call.factors
        if number >= len(firsts):
            _product(a, b, call.bias, product)
        for left, right in others:
            product.add_(torch.mm(left, right))
        _finish(call, product)


def _product_memory(call: JoinedCall) -> Tensor:
    """The result that is the product, or a new tensor for it."""
    results = (0,) if call.epilogue is None else call.epilogue.results
    own = next((out for number, out in zip(results, call.outs, strict=True) if not number), None)
    return call.outs[0].new_empty(call.shape) if own is None else own


def _finish(call: JoinedCall, product: Tensor) -> None:
    """Compute the functions of a product from memory."""
    epilogue = call.epilogue
    if epilogue is None:
        return
    operands = (product, *call.beside)
    for number, out, is_sum in zip(epilogue.results, call.outs, epilogue.sums, strict=True):
        if is_sum:
            (summed,) = epilogue.step(number).arguments
            if summed >= len(operands):
                function = replace(epilogue, results=(int(summed),)).only
                rows = compute("epilogue", function, operands, torch.empty_like(product))
            else:
                rows = operands[int(summed)]
            torch.sum(rows, 0, out=out)
        elif number:
            compute("epilogue", replace(epilogue, results=(number,)).only, operands, out)


def _is_in_blocks(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> bool:
    if not out.numel() or not a.shape[1] or a.dtype not in _TYPES:
        return False
    choice = product_choice(_matrices(a, b, bias, out))
    return choice.kind == "blocks" and choice.parts == 1


def _multiply(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> None:
    """One product by the plan with the least estimated time."""
    product = _matrices(a, b, bias, out)
    choice = product_choice(product)
    if choice.kind == "copies":
        launch_gathered((a, b), bias, out, own_is_b=choice.own_is_b)
    elif choice.kind == "grid":
        assert product.grid is not None, "a grid that divides is chosen"
        launch_in_cubes((a, b), bias, out, product.grid)
    elif choice.parts == 1:
        launch_products(ProductCall(a.unsqueeze(0), b.unsqueeze(0), out.unsqueeze(0), bias))
    else:
        _multiply_parts((a, b), bias, out, choice.parts)


def _matrices(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> ProductMatrices:
    return ProductMatrices(
        machine=gather_machine(),
        size=ProductSize(a.shape[0], a.shape[1], b.shape[1], a.itemsize),
        a=matrix_in_memory(a, 0),
        b=matrix_in_memory(b, 1),
        shares=(len(window_of(a).window.shards), len(window_of(b).window.shards)),
        grid=cube_grid(a, b, out),
        has_bias=bias is not None,
    )


def _multiply_parts(
    factors: tuple[Tensor, Tensor], bias: Tensor | None, out: Tensor, parts: int
) -> None:
    """The product in parts of the depth, which are summed with the bias and rounded once."""
    a, b = factors
    count = parts if bias is None else parts + 1
    sums = torch.empty((count, *out.shape), dtype=torch.float32, device=out.device)
    launch_products(ProductCall(_unfolded(a, 1, parts), _unfolded(b, 0, parts), sums[:parts]))
    if bias is not None:
        sums[parts].copy_(bias.expand(out.shape))
    sum_of_parts(out.unsqueeze(0), sums)


def _unfolded(x: Tensor, axis: int, parts: int) -> Tensor:
    """A matrix of which `axis` is cut into parts, as a batch of the parts."""
    return cut(x, axis, parts).movedim(axis, 0)
