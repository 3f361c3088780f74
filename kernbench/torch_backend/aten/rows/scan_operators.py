"""Running sums and products along an axis, of rows that fit the scratch of a PE."""

from collections.abc import Callable
from typing import Any

import torch

from kernbench.torch_backend.aten.indexing.selection_operators import launch_rows
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.kernels import scans as kernels
from kernbench.torch_backend.runtime.element_types import hardware_type


def _scan(name: str, kernel: Callable[..., None], values: int) -> None:
    """An operator whose kernel keeps `values` rows in the type in which it computes."""

    @operator(f"{name}.out")
    def scanned(
        x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None, out: torch.Tensor
    ) -> Any:
        del dtype
        if not x.dim() or not x.numel():
            return out.copy_(x)
        rows = x.movedim(dim, -1).contiguous().to(out.dtype)
        wide = torch.float32 if out.dtype in {torch.float16, torch.bfloat16} else out.dtype
        result = torch.empty(rows.shape, dtype=out.dtype, device=x.device)
        given = (name, kernel, rows, (hardware_type(wide),), [rows, result])
        if not launch_rows(*given, 2, values * wide.itemsize):
            return NotImplemented
        return out.copy_(result.movedim(-1, dim))

    del scanned


_scan("cumsum", kernels.running_sums, 2)
_scan("cumprod", kernels.running_products, 2)
