"""Matrix products: each is one launch of the low level's blocked product on all PEs that help.

An operand may be transposed, panel by panel in TCM; any other strides take a copy first.
"""

import torch

from kernbench.torch_backend.launches import window_of
from kernbench.torch_backend.operators import operator
from kernbench.torch_backend.pointwise_operators import compute
from runtime.torch.products.matmul import matmul
from runtime.torch.tensors.tensor import Tensor

_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
"""The types of PyTorch whose products the GEMM engine computes with PyTorch's rounding."""


@operator("mm.out", types=_TYPES)
def _mm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    return _product(a, b, None, out)


@operator("addmm.out", types=_TYPES)
def _addmm(
    bias: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: torch.Tensor,
) -> torch.Tensor:
    if beta == alpha == 1 and bias.dim() == 1 and bias.shape[0] == b.shape[1]:
        return _product(a, b, bias, out)
    product = torch.mm(a, b)
    if not beta:
        # Then a NaN of `bias` has no effect.
        return compute("addmm", lambda x, by: x * by, (product, alpha), out)
    return compute(
        "addmm", lambda c, x, beta, by: c * beta + x * by, (bias, product, beta, alpha), out
    )


@operator("bmm.out", types=_TYPES)
def _bmm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    out.resize_((a.shape[0], a.shape[1], b.shape[2]))
    for each_a, each_b, result in zip(a, b, out, strict=True):
        _product(each_a, each_b, None, result)
    return out


@operator("baddbmm.out", types=_TYPES)
def _baddbmm(
    x: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: torch.Tensor,
) -> torch.Tensor:
    product = torch.bmm(a, b)
    if not beta:
        return compute("baddbmm", lambda y, by: y * by, (product, alpha), out)
    return compute(
        "baddbmm", lambda c, y, beta, by: c * beta + y * by, (x, product, beta, alpha), out
    )


@operator("mv", types=_TYPES)
def _mv(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b.unsqueeze(1)).squeeze(1)


@operator("dot", types=_TYPES)
def _dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a.unsqueeze(0), b.unsqueeze(1)).view(())


def _product(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor
) -> torch.Tensor:
    shape = (a.shape[0], b.shape[1])
    if out.shape != shape:
        out.resize_(shape)
    target = out if out.is_contiguous() else torch.empty(shape, dtype=a.dtype, device=a.device)
    if target.numel():
        if not a.shape[1]:
            target.copy_(torch.zeros((), dtype=a.dtype) if bias is None else bias)
        else:
            _multiply(a, b, bias, target)
    return out if target is out else out.copy_(target)


def _multiply(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor
) -> None:
    (left, a_turned), (right, b_turned) = _matrix(a), _matrix(b)
    matmul(
        left,
        right,
        bias=None if bias is None else window_of(bias.contiguous()).window,
        transpose_input=a_turned,
        transpose_other=b_turned,
        out=window_of(out).window.view(tuple(out.shape)),
    )


def _matrix(x: torch.Tensor) -> tuple[Tensor, bool]:
    """A matrix as it is in memory, and whether that is transposed."""
    if x.is_contiguous():
        return window_of(x).window.view(tuple(x.shape)), False
    if x.t().is_contiguous():
        return window_of(x.t()).window.view(tuple(x.t().shape)), True
    return _matrix(x.contiguous())
