"""Matrix products: one launch of blocked products on all PEs that help, for a batch as well.

An operand may have any pitch and may be transposed, without a copy. A product whose result has few
tiles and whose sums are long is divided along the sums, and the parts are added by another launch.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import compute
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.cube_launch import cube_grid, cube_time_ns, launch_in_cubes
from kernbench.torch_backend.launching.gather_launch import GatherProduct, gather_machine
from kernbench.torch_backend.launching.product_launch import (
    blocks_time_ns,
    launch_products,
    product_grid,
)
from kernbench.torch_backend.launching.rowwise_launch import sum_of_parts
from kernbench.torch_backend.runtime.pytorch_api import cut
from runtime.device.rank.properties import get_device_properties

_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
"""The types of PyTorch whose products the GEMM engine computes with PyTorch's rounding."""
_Scaled = tuple[Tensor, float]
"""A tensor and its factor."""
_LAUNCH_NS = 1000.0
"""The estimated time of a launch that adds parts of sums, without its bytes."""


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
    launch_products(a.unsqueeze(0), b.unsqueeze(0), None, out.unsqueeze(0))
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
        launch_products(a, b, bias, target)
    return out if target is out else out.copy_(target)


def _multiply(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> None:
    """One product by the plan with the least estimated time."""
    blocks_ns = blocks_time_ns(a, b, gather_machine())
    plans: list[tuple[float, Callable[[], None]]] = [
        (blocks_ns, partial(_multiply_blocks, a, b, bias, out))
    ]
    for own_is_b in (True, False):
        product = GatherProduct(a, b, own_is_b=own_is_b)
        plans.append((product.time_ns, partial(product.launch, bias, out)))
    grid = cube_grid(a, b, out)
    if grid is not None:
        launch = partial(launch_in_cubes, (a, b), bias, out, grid)
        plans.append((cube_time_ns(grid, a, b), launch))
    _, launch = min(plans, key=lambda plan: plan[0])
    launch()


def _multiply_blocks(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> None:
    left, right = a.unsqueeze(0), b.unsqueeze(0)
    parts = 1 if bias is not None else _parts_of_sums(left, right)
    if parts == 1:
        launch_products(left, right, bias, out.unsqueeze(0))
        return
    sums = torch.empty((parts, *out.shape), dtype=torch.float32, device=out.device)
    launch_products(_unfolded(left, 2, parts), _unfolded(right, 1, parts), None, sums)
    sum_of_parts(out.unsqueeze(0), sums)


def _parts_of_sums(a: Tensor, b: Tensor) -> int:
    """The number of parts of the sums with the least estimated time."""
    properties, (_, m, k), n = get_device_properties(), a.shape, b.shape[2]
    deepest = properties.gemm_tile.k
    best = (product_grid(a, b).time_ns, 1)
    parts = 2
    while k % parts == 0 and k // parts >= deepest and parts <= properties.pe_count:
        grid = product_grid(_unfolded(a, 2, parts), _unfolded(b, 1, parts))
        # Each part is written once and read once, on as many PEs as the result has tiles.
        tiles = min(grid.rows * grid.columns * parts, properties.pe_count)
        added_ns = 8 * parts * m * n / (properties.hbm_gbs_per_pe * tiles)
        best = min(best, (grid.time_ns + added_ns + _LAUNCH_NS, parts))
        parts *= 2
    return best[1]


def _unfolded(x: Tensor, axis: int, parts: int) -> Tensor:
    """A batch of one matrix, of which `axis` is cut into parts, as a batch of the parts."""
    return cut(x[0], axis - 1, parts).movedim(axis - 1, 0)
