"""Operators without operands: a constant of the host, written to the device."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.signal.windows import kaiser

from kernbench.torch_backend.aten.operators import CONSTANTS, DEVICE, HostTime, operator


@operator("arange.start_out", types=None)
def _arange(start: float, end: float, step: float = 1, *, out: Tensor) -> Tensor:
    return _written("arange", torch.arange(start, end, step, dtype=out.dtype), out)


@operator("linspace.out", types=None)
def _linspace(start: float, end: float, steps: int, *, out: Tensor) -> Tensor:
    return _written("linspace", torch.linspace(start, end, steps, dtype=out.dtype), out)


@operator("logspace.out", types=None)
def _logspace(start: float, end: float, steps: int, base: float = 10, *, out: Tensor) -> Tensor:
    return _written("logspace", torch.logspace(start, end, steps, base, dtype=out.dtype), out)


@operator("_efficientzerotensor", types=None)
def _zeros(size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return torch.zeros(size, dtype=dtype, device=DEVICE)


@operator("eye.m_out", types=None)
def _eye(rows: int, columns: int, *, out: Tensor) -> Tensor:
    return _written("eye", torch.eye(rows, columns, dtype=out.dtype), out)


@operator("eye.out", types=None)
def _square_eye(rows: int, *, out: Tensor) -> Tensor:
    return _written("eye", torch.eye(rows, dtype=out.dtype), out)


def _indices(name: str) -> None:
    make = getattr(torch, name)

    @operator(name, types=None)
    def indices(
        rows: int, columns: int, offset: int = 0, *, dtype: torch.dtype | None = None, **_: Any
    ) -> Tensor:
        host = make(rows, columns, offset, dtype=dtype or torch.int64)
        return _written(name, host, torch.empty(host.shape, dtype=host.dtype, device=DEVICE))

    del indices


_indices("tril_indices")
_indices("triu_indices")


@operator("kaiser_window", "kaiser_window.periodic", "kaiser_window.beta", types=None)
def _kaiser(
    length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: torch.dtype | None = None,
    **_: Any,
) -> Any:
    # PyTorch's own operator has no part for other devices: its Bessel functions are of the host.
    dtype = dtype or torch.get_default_dtype()
    if length < 0 or dtype not in {torch.float32, torch.float64}:
        return NotImplemented
    return kaiser(length, beta=beta, sym=not periodic, dtype=dtype, device=torch.device(DEVICE))


def _written(name: str, host: Tensor, out: Tensor) -> Tensor:
    if out.shape != host.shape:
        out.resize_(host.shape)
    CONSTANTS[name] += 1
    out.copy_(host)
    if host.numel():
        HostTime.count_copy()
    return out
