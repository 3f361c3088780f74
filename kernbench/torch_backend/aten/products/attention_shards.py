"""Attention of distributed tensors (DTensor): a rank attends for the batches and heads that it has.

PyTorch's own rules are those of its kernels for CUDA: operands divided alike along batches or heads
need no other rank. Operands with another placement on an axis of the mesh are gathered along it.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeGuard, cast

from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.placement_types import Placement

_TOKENS_AND_ELEMENTS = 2
"""The last axes of an operand; before them are batches and heads."""


def are_distributed(tensors: Sequence[Tensor]) -> "TypeGuard[Sequence[DTensor]]":
    """Whether all are distributed; a program that has not imported such tensors does not now."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and all(isinstance(each, module.DTensor) for each in tensors)


def on_shards(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor], operands: "Sequence[DTensor]"
) -> Tensor:
    """The result of `attend` of the shards, as a distributed tensor."""
    from torch.distributed.tensor import DTensor

    mesh, placements = operands[0].device_mesh, _common(operands)
    q, k, v = (each.redistribute(mesh, placements).to_local() for each in operands)
    return DTensor.from_local(attend(q, k, v), mesh, placements, run_check=False)


def _common(operands: "Sequence[DTensor]") -> "list[Placement]":
    """The placement on each axis of the mesh with which all ranks have equal parts."""
    from torch.distributed.tensor import Replicate, Shard

    mesh, parts = operands[0].device_mesh, dict[int, int]()
    divisible = range(operands[0].dim() - _TOKENS_AND_ELEMENTS)
    placements: list[Placement] = []
    for axis, placement in enumerate(operands[0].placements):
        kept: Placement = Replicate()
        if type(placement) is Shard and all(
            each.placements[axis] == placement for each in operands
        ):
            # The stub has no type of the method.
            for dim in filter(cast("Callable[[int], bool]", placement.is_shard), divisible):
                count = parts.get(dim, 1) * mesh.size(axis)
                if all(each.shape[dim] % count == 0 for each in operands):
                    parts[dim], kept = count, placement
        placements.append(kept)
    return placements
