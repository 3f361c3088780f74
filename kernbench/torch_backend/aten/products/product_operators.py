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
from kernbench.torch_backend.launching.joined_launch import (
    JoinedCall,
    launch_joined,
    with_neighbours,
)
from kernbench.torch_backend.launching.launches import window_of
from kernbench.torch_backend.runtime.storages import storages
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.operations.block_launch import launch_blocks_together
from runtime.device.operations.product_call import ProductCall
from runtime.device.operations.product_launch import choice_of, launch_product

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
    return _product(a, b, None, out)


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
    _check_types(a, b)
    return (a * b).sum()


def _check_types(a: Tensor, b: Tensor) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"a product of {a.dtype} and {b.dtype}: both operands have to have one type; convert "
            "one of them with x.to(dtype), or run the product under torch.autocast"
        )


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
    _check_types(a, b)
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
    launch_product(_call(a, b, bias, target))
    return out if target is out else out.copy_(target)


def products_together(calls: Sequence[JoinedCall]) -> None:
    """Independent sums of products, and functions of them. Those in blocks are one launch; where no
    plan joins them, those in parts of the depth are launches of their own.
    """
    rest, together = list[tuple[JoinedCall, Tensor]](), list[tuple[JoinedCall, Tensor]]()
    for call in calls:
        product = _product_memory(call)
        (together if _parts(call, product) else rest).append((call, product))
    CALLS["mm.out"] += sum(len(call.factors) for call, _ in together)
    if not together or launch_joined([call for call, _ in together]):
        together = []
    rest += [each for each in together if _parts(*each) > 1]
    together = [each for each in together if _parts(*each) == 1]
    firsts = [
        _call(a.unsqueeze(0), b.unsqueeze(0), call.bias, product.unsqueeze(0))
        for call, product in together
        for a, b in call.factors[:1]
    ]
    if firsts:
        launch_blocks_together(firsts)
    for number, (call, product) in enumerate((*together, *rest)):
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


def _parts(call: JoinedCall, product: Tensor) -> int:
    """The most parts of the depth of a factor; 0 if the plan of one is not blocks."""
    parts = 1
    for a, b in call.factors:
        if not product.numel() or not a.shape[1] or a.dtype not in _TYPES:
            return 0
        choice = choice_of(_call(a.unsqueeze(0), b.unsqueeze(0), call.bias, product.unsqueeze(0)))
        if choice.kind != "blocks":
            return 0
        parts = max(parts, choice.parts)
    return parts


def _call(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> ProductCall:
    """The call of batches; a matrix whose elements have no neighbours in memory is copied."""
    return ProductCall(
        a=with_neighbours(a),
        b=with_neighbours(b),
        out=window_of(out),
        bias=None if bias is None else window_of(bias.contiguous()),
        memory=_memory,
    )


def _memory(nbytes: int) -> DeviceTensor:
    return storages().bytes_of(torch.empty(nbytes, dtype=torch.uint8, device="ahbm"))
