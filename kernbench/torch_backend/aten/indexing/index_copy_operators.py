"""Operators that write to whole slices of an axis, by their numbers: as `index_put_` of rows."""

from typing import Any

import torch

from kernbench.torch_backend.aten.operators import operator


@operator("index_copy.out", types=None)
def _index_copy(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, out: torch.Tensor
) -> Any:
    if not x.dim() or x.is_complex():
        return NotImplemented
    if out.data_ptr() != x.data_ptr():
        out.resize_(x.shape).copy_(x)
    out.movedim(dim, 0).index_put_((index,), source.movedim(dim, 0))
    return out


@operator("index_fill_.int_Scalar", types=None)
def _index_fill(x: torch.Tensor, dim: int, index: torch.Tensor, value: float) -> Any:
    if not x.dim() or x.is_complex():
        return NotImplemented
    x.movedim(dim, 0).index_put_((index,), torch.full((), value, dtype=x.dtype, device=x.device))
    return x
