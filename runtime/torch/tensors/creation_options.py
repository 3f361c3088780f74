"""The keywords that all constructors of tensors have: their checks, and the tensor that they make.

dtype           the element type
dp              the placement on PEs; None: as `default_placement` spreads it
layout          the order of a matrix in the memory of a PE
device          accepted where it names the device of this rank
requires_grad   accepted where it is False: there are no gradients
"""

import builtins
from dataclasses import dataclass, replace
from typing import TypedDict

from runtime.core import dtypes
from runtime.core.dtypes import DType
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.device import check_device, device
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import ONE_PE, DPPolicy, Placement, default_placement
from runtime.model.tile_placement import TilePlacement
from runtime.torch.tensors.tensor import Tensor

TYPES = ", ".join(repr(dtype) for dtype in dtypes.ALL)
_OF_PYTHON = {
    builtins.float: dtypes.float64,
    builtins.int: dtypes.int64,
    builtins.bool: dtypes.boolean,
}


class Keywords(TypedDict, total=False):
    """The keywords of constructors that make a tensor like another one, or draw its elements."""

    dtype: DType | None
    dp: Placement | None
    device: device | str | int | None
    requires_grad: bool


class LayoutKeywords(Keywords, total=False):
    """The keywords of all other constructors."""

    layout: BlockedLayout | None


@dataclass(frozen=True)
class Options:
    """The checked keywords of a call of a constructor."""

    dtype: DType | None
    policy: Placement | None
    layout: BlockedLayout | None = None

    def new(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        """A tensor that is not written; `dtype` if the call has none."""
        state, element = running_rank(), self.dtype or dtype
        policy = self.policy
        if policy is None:
            pes = state.pes
            # The tiles of a layout are those of one shard: only an explicit `dp` divides it.
            policy = (
                ONE_PE
                if self.layout
                else default_placement(shape, element.itemsize, cubes=pes.cubes, pes=pes.per_cube)
            )
        return Tensor.allocate(shape, element, policy, state, self.layout)

    def of(self, other: Tensor) -> "Options":
        """The keywords of `zeros_like` and its relatives: what is missing is that of `other`."""
        policy, layout = self.policy or other.policy_of_copies, self.layout
        if self.policy is None and layout is None:
            layout = other.layout
        return replace(self, dtype=self.dtype or other.dtype, policy=policy, layout=layout)


def checked_options(
    function: str, given: Keywords | LayoutKeywords, *, has_layout: bool = False
) -> Options:
    """The keywords of a call of `function`; `TypeError` or `RuntimeError` for a wrong one."""
    for name in given:
        if name not in Keywords.__annotations__ and not (has_layout and name == "layout"):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    dtype, dp, layout = (given.get(name) for name in ("dtype", "dp", "layout"))
    if dp is not None and not isinstance(dp, DPPolicy | TilePlacement):
        problem = f"must be torch.DPPolicy or torch.tiled_row_major(...), not {_described(dp)}"
        raise TypeError(f"{function}(): argument 'dp' {problem}")
    if layout is not None and not isinstance(layout, BlockedLayout):
        advice = "torch.blocked_row_major(...), torch.blocked_column_major(...) or None"
        problem = f"must be {advice}, not {_described(layout)}"
        raise TypeError(f"{function}(): argument 'layout' {problem}")
    check_device(function, given.get("device"))
    if given.get("requires_grad"):
        raise RuntimeError(
            f"{function}(): requires_grad=True: kernbench has no gradients; compute them in the "
            "program"
        )
    return Options(None if dtype is None else checked_dtype(function, dtype), dp, layout)


def checked_dtype(function: str, dtype: object) -> DType:
    """An element type, or Python's `float`, `int` or `bool`; `TypeError` for anything else."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _OF_PYTHON:
        return _OF_PYTHON[dtype]
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    match = [known for known in dtypes.ALL if known.torch_name == name]
    advice = f"did you mean {match[0]!r}?" if match else f"known: {TYPES}"
    given = f"{type(dtype).__name__} {dtype!r}" if isinstance(dtype, str) else type(dtype).__name__
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {given}; {advice}")


def _described(given: object) -> str:
    """The type of an argument; for the two kinds of tiles, the argument that they belong to."""
    match given:
        case TilePlacement():
            call = f"torch.tiled_{given.order}(...)"
            return f"{call}, which deals tiles to PEs: dp={call}"
        case BlockedLayout():
            call = f"torch.blocked_{given.order}(...)"
            return f"{call}, which orders the elements of a shard: layout={call}"
        case _:
            return type(given).__name__
