"""Operators along an axis: those of numbers, as of vectors of one element, the most frequent
elements, and reductions by an index.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from kernbench.torch_backend.aten.fallback_chain import formula
from kernbench.torch_backend.aten.indexing.scatter_operators import expanded_along

_LIKE_OPERAND = {
    "scatter.src": torch.scatter,
    "scatter.value": torch.scatter,
    "scatter_add": torch.scatter_add,
    "scatter_reduce.two": torch.scatter_reduce,
    "max.dim": torch.max,
    "min.dim": torch.min,
    "kthvalue": torch.kthvalue,
    "median.dim": torch.median,
    "nanmedian.dim": torch.nanmedian,
    "topk": torch.topk,
}
"""Operators along an axis, whose results have as many axes as the first operand."""


def _of_numbers(name: str, function: Callable[..., Any]) -> None:
    @formula(name, is_of_narrow_types=True)
    def along(x: Tensor, *given: Any, **options: Any) -> Any:
        operands = (x, *given)
        if all(each.dim() for each in operands if isinstance(each, Tensor)):
            return NotImplemented
        results = function(*tree_map(_vector, operands), **options)
        shaped = partial(torch.reshape, shape=x.shape)
        return tree_map(shaped, results)

    del along


def _vector(value: Any) -> Any:
    return value.view(1) if isinstance(value, Tensor) and not value.dim() else value


for _name, _function in _LIKE_OPERAND.items():
    _of_numbers(_name, _function)


@formula("gather", is_of_narrow_types=True)
def _gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Any:
    del sparse_grad
    if x.dim() and index.dim():
        return NotImplemented
    return _vector(x).gather(dim, _vector(index)).view(index.shape)


@formula("mode", is_of_narrow_types=True)
def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if not x.numel():
        return NotImplemented
    ordered, places = x.sort(dim=dim, stable=True)
    ordered, places = ordered.movedim(dim, -1), places.movedim(dim, -1)
    is_first = torch.ones_like(ordered, dtype=torch.int64)
    is_first[..., 1:].copy_(ordered[..., 1:] != ordered[..., :-1])
    runs = is_first.cumsum(-1) - 1
    counts = torch.zeros_like(runs).scatter_add(-1, runs, torch.ones_like(runs))
    # Of several runs of this length the first one, of which the last element stands for all.
    longest = counts.argmax(-1, keepdim=True)
    last = counts.cumsum(-1).gather(-1, longest) - 1
    chosen = [each.gather(-1, last).movedim(-1, dim) for each in (ordered, places)]
    return tuple(each if keepdim else each.squeeze(dim) for each in chosen)


@formula("scatter.reduce")
def _scatter_reduced(x: Tensor, dim: int, index: Tensor, source: Tensor, *, reduce: str) -> Any:
    how = {"add": "sum", "multiply": "prod"}.get(reduce)
    return NotImplemented if how is None else x.scatter_reduce(dim, index, source, how)


@formula("scatter.value_reduce")
def _scatter_reduced_number(
    x: Tensor, dim: int, index: Tensor, value: float, *, reduce: str
) -> Any:
    source = torch.full(index.shape, value, dtype=x.dtype, device=x.device)
    return _scatter_reduced(x, dim, index, source, reduce=reduce)


@formula("index_reduce", is_of_narrow_types=True)
def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    table, rows = _vector(x), _vector(source)
    if not rows.numel():
        return x.clone()
    columns = expanded_along(_vector(index), rows.shape, dim)
    reduced = table.scatter_reduce(dim, columns, rows, reduce, include_self=include_self)
    return reduced.view(x.shape)
