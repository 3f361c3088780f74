"""Operators whose results have the shape that elements decide: positions and elements under a mask.

The device counts the true elements of blocks of the mask, the host reads these counts, and one
launch moves the elements of all blocks.
"""

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.pytorch_api import broadcast_tensors, integers
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.kernels import compaction as kernels
from runtime.device.kernels.compaction import MaskBlock
from runtime.device.movers.movers import spread
from runtime.device.regions.regions import Pe

_BLOCK = 128
"""Elements of a mask that are compared with each other."""
MOST_MASKED = 1 << 22
"""Elements of a mask; one of more is left to the host."""


class _CountedMask:
    """A mask as bytes of 0 and 1, and its blocks with true elements."""

    def __init__(self, mask: Tensor) -> None:
        self.bytes = (mask != 0).reshape(-1).to(torch.uint8).contiguous()
        length = self.bytes.numel()
        whole = length // _BLOCK * _BLOCK
        parts = [self.bytes[:whole].view(-1, _BLOCK).sum(1, dtype=torch.int32)]
        if whole < length:
            parts.append(self.bytes[whole:].sum(0, keepdim=True, dtype=torch.int32))
        counts = integers(torch.cat(parts)) if length else []
        starts = accumulate(counts, initial=0)
        self.count = sum(counts)
        self.blocks = [
            MaskBlock(number * _BLOCK, min((number + 1) * _BLOCK, length), count, start)
            for number, (count, start) in enumerate(zip(counts, starts, strict=False))
            if count
        ]

    def dealt(self) -> dict[Pe, tuple[MaskBlock, ...]]:
        """Equal numbers of blocks for each PE."""
        movers = spread(len(self.blocks) * _BLOCK, 8)[: len(self.blocks)]
        bounds = chunk_bounds(len(self.blocks), len(movers))
        return {
            (spec.cube, spec.pe): tuple(self.blocks[first:last])
            for spec, (first, last) in zip(movers, bounds, strict=True)
        }

    def positions(self) -> Tensor:
        """The positions of the true elements in row-major order."""
        out = torch.empty(self.count, dtype=torch.int64, device=self.bytes.device)
        if self.blocks:
            pieces, windows = self.dealt(), [window_of(each) for each in (self.bytes, out)]
            arguments = (PerPe(pieces), *map(pointer_of, windows))
            launched("nonzero", kernels.true_positions, arguments, windows, list(pieces))
        return out

    def move(self, name: str, kernel: Any, source: Tensor, out: Tensor) -> None:
        """Launch a kernel that moves elements of `source` to `out`."""
        if not self.blocks:
            return
        # A repeated element may be a view of all.
        source = source.contiguous()
        dtype, pieces = source.dtype, self.dealt()
        least = -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min
        windows = [window_of(each) for each in (self.bytes, source, out)]
        arguments = (PerPe(pieces), least, *map(pointer_of, windows))
        launched(name, kernel, arguments, windows, list(pieces))


@operator("nonzero")
def _nonzero(x: Tensor) -> Any:
    if x.numel() > MOST_MASKED:
        return NotImplemented
    positions = _CountedMask(x).positions()
    if x.dim() == 1:
        return positions.unsqueeze(1)
    columns = list[Tensor]()
    for length in reversed(x.shape):
        quotient = torch.div(positions, length, rounding_mode="floor")
        columns.append(positions - quotient * length)
        positions = quotient
    return torch.stack(columns[::-1], 1) if columns else positions.new_empty(len(positions), 0)


@operator("nonzero.out")
def _nonzero_out(x: Tensor, *, out: Tensor) -> Any:
    result = _nonzero(x)
    if result is NotImplemented:
        return NotImplemented
    return (out if out.shape == result.shape else out.resize_(result.shape)).copy_(result)


@operator("nonzero_static")
def _nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Any:
    positions = _nonzero(x)
    if positions is NotImplemented or size < 0:
        return NotImplemented
    out = torch.full((size, x.dim()), fill_value, dtype=torch.int64, device=x.device)
    count = min(size, len(positions))
    out[:count].copy_(positions[:count])
    return out


@operator("nonzero_static.out")
def _nonzero_static_out(x: Tensor, *, size: int, fill_value: int = -1, out: Tensor) -> Any:
    result = _nonzero_static(x, size=size, fill_value=fill_value)
    return result if result is NotImplemented else out.resize_(result.shape).copy_(result)


@operator("masked_select")
def _masked_select(x: Tensor, mask: Tensor) -> Any:
    given, mask = broadcast_tensors(x, mask)
    if mask.numel() > MOST_MASKED:
        return NotImplemented
    counted = _CountedMask(mask)
    out = torch.empty(counted.count, dtype=x.dtype, device=x.device)
    if x.dtype == torch.bool:
        counted.move(
            "masked_select",
            kernels.true_elements,
            given.to(torch.uint8).reshape(-1),
            written := out.to(torch.uint8),
        )
        return out.copy_(written)
    counted.move("masked_select", kernels.true_elements, given.reshape(-1), out)
    return out


@operator("masked_select.out")
def _masked_select_out(x: Tensor, mask: Tensor, *, out: Tensor) -> Any:
    result = _masked_select(x, mask)
    if result is NotImplemented:
        return NotImplemented
    return (out if out.shape == result.shape else out.resize_(result.shape)).copy_(result)


@operator("masked_scatter_")
def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Any:
    if x.dtype == torch.bool or source.dtype != x.dtype or x.numel() > MOST_MASKED:
        return NotImplemented
    return place_under(x, mask.expand(x.shape), source, takes_all=False)


def place_under(x: Tensor, mask: Tensor, source: Tensor, *, takes_all: bool) -> Tensor:
    """Write the first elements of `source`, in their order, over those of `x` under a mask. A mask
    that `takes_all` has as many true elements as `source` has elements.
    """
    counted, given = _CountedMask(mask), source.numel()
    if counted.count > given or (takes_all and counted.count != given):
        least = "" if takes_all else "at least "
        raise RuntimeError(
            f"the mask has {counted.count:,} true elements, the tensor whose elements go there has "
            f"{given:,}; it must have {least}as many"
        )
    target = x if x.is_contiguous() else x.contiguous()
    elements = source.reshape(-1)
    counted.move("masked_scatter_", kernels.placed_under_mask, elements, target.view(-1))
    return x if target is x else x.copy_(target)


@operator("equal")
def _equal(a: Tensor, b: Tensor) -> Any:
    if a.dtype != b.dtype or a.device != b.device:
        return NotImplemented
    return a.shape == b.shape and (not a.numel() or bool((a == b).all().item()))
