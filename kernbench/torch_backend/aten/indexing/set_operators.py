"""Operators on the elements of a tensor as a set or a list: membership, distinct elements, the
elements in the middle of an order.
"""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.indexing.sort_operators import sorted_along
from kernbench.torch_backend.aten.operators import DEVICE, operator

_MOST_COMPARED = 1 << 24
"""Comparisons of elements with those of a list."""
_MOST_COLUMNS = 64
"""Elements of a slice, each of which is sorted by."""


@operator("isin.Tensor_Tensor_out")
def _isin(
    elements: Tensor,
    test: Tensor,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor,
) -> Any:
    del assume_unique
    if elements.numel() * test.numel() > _MOST_COMPARED:
        return NotImplemented
    if not test.numel():
        return out.resize_(elements.shape).fill_(invert)
    is_in = (elements.unsqueeze(-1) == test.reshape(-1)).any(-1)
    return out.resize_(elements.shape).copy_(~is_in if invert else is_in)


@operator("isin.Tensor_Scalar_out")
def _isin_number(
    elements: Tensor, test: float, *, assume_unique: bool = False, invert: bool = False, out: Tensor
) -> Tensor:
    del assume_unique
    result = elements != test if invert else elements == test
    return out.resize_(elements.shape).copy_(result)


@operator("_unique2")
def _unique(
    x: Tensor,
    sorted: bool = True,  # noqa: A002 - PyTorch's name
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    del sorted
    flat = x.reshape(-1)
    ordered = sorted_along(flat, 0, descending=False)
    if ordered is None or not flat.numel():
        return NotImplemented
    elements, places = ordered
    distinct, numbers, counts = _runs(elements, numbered=return_inverse)
    inverse = torch.empty(0, dtype=torch.int64, device=DEVICE)
    if return_inverse:
        inverse = torch.empty_like(places).scatter_(0, places, numbers).view(x.shape)
    return distinct, inverse, counts if return_counts else counts[:0].clone()


@operator("_unique")
def _unique_with_inverse(
    x: Tensor,
    sorted: bool = True,  # noqa: A002 - PyTorch's name
    return_inverse: bool = False,
) -> Any:
    results = _unique(x, sorted, return_inverse)
    return results if results is NotImplemented else results[:2]


@operator("unique_dim")
def _unique_slices(
    x: Tensor,
    dim: int,
    sorted: bool = True,  # noqa: A002 - PyTorch's name
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    del sorted, return_inverse, return_counts
    if not x.dim() or not x.numel():
        return NotImplemented
    slices = x.movedim(dim, 0)
    rows = slices.reshape(slices.shape[0], -1)
    if rows.shape[1] > _MOST_COLUMNS:
        return NotImplemented
    order = torch.arange(len(rows), device=x.device)
    # By stable sorts of the columns, the last one first.
    for column in reversed(range(rows.shape[1])):
        ordered = sorted_along(rows[:, column][order], 0, descending=False)
        if ordered is None:
            return NotImplemented
        order = order[ordered[1]]
    return _distinct_slices(slices, order, dim)


def _distinct_slices(slices: Tensor, order: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """One of each run of equal slices, which are in an order; the run of each, the lengths."""
    rows = slices.reshape(len(order), -1)[order]
    is_first = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    is_first[1:].copy_((rows[1:] != rows[:-1]).any(1))
    starts, numbers, counts = _spans(is_first, numbered=True)
    inverse = torch.empty_like(order).scatter_(0, order, numbers)
    return slices[order[starts]].movedim(0, dim), inverse, counts


@operator("unique_consecutive")
def _unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if not x.numel() or (dim is not None and not x.dim()):
        return NotImplemented
    if dim is not None:
        slices = x.movedim(dim, 0)
        return _distinct_slices(slices, torch.arange(len(slices), device=x.device), dim)
    distinct, numbers, counts = _runs(x.reshape(-1), numbered=return_inverse)
    inverse = numbers.view(x.shape) if return_inverse else counts[:0].clone()
    return distinct, inverse, counts if return_counts else counts[:0].clone()


def _runs(elements: Tensor, *, numbered: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The first element of each run of equal ones, the run of each element, the lengths."""
    is_first = torch.ones(elements.shape, dtype=torch.bool, device=elements.device)
    is_first[1:].copy_(elements[1:] != elements[:-1])
    starts, numbers, lengths = _spans(is_first, numbered=numbered)
    return elements[starts], numbers, lengths


def _spans(is_first: Tensor, *, numbered: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The starts of runs, the run of each element, the lengths."""
    starts = is_first.nonzero().view(-1)
    ends = torch.cat([starts[1:], torch.full_like(starts[:1], is_first.numel())])
    numbers = is_first.to(torch.int64).cumsum(0) - 1 if numbered else starts[:0]
    return starts, numbers, ends - starts


def _ordered(x: Tensor, dim: int) -> tuple[Tensor, Tensor] | None:
    return None if x.dtype == torch.bool else sorted_along(x, dim, descending=False)


def _chosen(
    ordered: tuple[Tensor, Tensor], place: Tensor | int, dim: int, keepdim: bool, outs: Any
) -> Any:
    """Write the elements at one place of each row, and their numbers."""
    for out, each in zip(outs, ordered, strict=True):
        if isinstance(place, Tensor):
            chosen = each.gather(dim, place)
        else:
            chosen = each.narrow(dim, place, 1)
        chosen = chosen if keepdim else chosen.squeeze(dim)
        (out if out.shape == chosen.shape else out.resize_(chosen.shape)).copy_(chosen)
    return outs


@operator("kthvalue.values")
def _kth(
    x: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, values: Tensor, indices: Tensor
) -> Any:
    ordered = _ordered(x, dim) if x.dim() and x.numel() else None
    if ordered is None:
        return NotImplemented
    return _chosen(ordered, k - 1, dim, keepdim, (values, indices))


def _median(name: str, *, counts_nan: bool) -> None:
    def place_of(x: Tensor, ordered: Tensor, dim: int) -> Tensor | int:
        length = x.shape[dim]
        if not x.is_floating_point():
            return (length - 1) // 2
        numbers = (ordered == ordered).sum(dim, keepdim=True)  # noqa: PLR0124 - NaN differs
        if counts_nan:
            # The first NaN of the row is behind all numbers.
            middle = torch.full_like(numbers, (length - 1) // 2)
            return torch.where(numbers == length, middle, numbers)
        return torch.div((numbers - 1).clamp(min=0), 2, rounding_mode="floor")

    @operator(f"{name}.dim_values")
    def of_rows(
        x: Tensor, dim: int, keepdim: bool = False, *, values: Tensor, indices: Tensor
    ) -> Any:
        ordered = _ordered(x, dim) if x.dim() and x.numel() else None
        if ordered is None:
            return NotImplemented
        place = place_of(x, ordered[0], dim)
        return _chosen(ordered, place, dim, keepdim, (values, indices))

    @operator(name)
    def of_all(x: Tensor) -> Any:
        flat = x.reshape(-1)
        ordered = _ordered(flat, 0) if flat.numel() else None
        if ordered is None:
            return NotImplemented
        place = place_of(flat, ordered[0], 0)
        if isinstance(place, Tensor):
            return ordered[0].gather(0, place).view(())
        return ordered[0][place].clone()

    del of_rows, of_all


_median("median", counts_nan=True)
_median("nanmedian", counts_nan=False)
