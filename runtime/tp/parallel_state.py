"""The tensor parallel and data parallel groups of a rank.

With n ranks a tensor parallel group, the ranks i n to (i + 1) n - 1 form group i; the data parallel
group of a rank has the ranks at the same position in all of them.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from operator import index

from runtime.device.rank.rank_state import ProcessGroup
from runtime.torch import distributed as dist

_MISSING = "TP group not initialised; call initialize_model_parallel() first"


@dataclass(frozen=True)
class ParallelGroups:
    """The two groups of which this rank is a member."""

    tensor: ProcessGroup
    data: ProcessGroup


# A rank program has its own context, like the rank's state.
_groups: ContextVar[ParallelGroups | None] = ContextVar("parallel_groups", default=None)


def initialize_model_parallel(tensor_model_parallel_size: int = 1) -> None:
    """Make the groups; every rank calls it with the same size, after `init_process_group`.

    Collectives of the groups use the algorithms of `auto`. `ValueError` unless the size divides the
    number of ranks, `RuntimeError` at a second call.
    """
    if model_parallel_is_initialized():
        raise RuntimeError(
            "tensor model parallel group is already initialized; call destroy_model_parallel() "
            "first"
        )
    size, world_size = index(tensor_model_parallel_size), dist.get_world_size()
    if size < 1 or world_size % size:
        raise ValueError(
            f"world size ({world_size}) is not divisible by the tensor model parallel size ({size})"
        )
    # Ranks of a tensor parallel group are consecutive, so they are neighbours on a ring of SIPs:
    # their all-reduces are in every layer (D. Narayanan et al., Efficient large-scale language
    # model training on GPU clusters using Megatron-LM, 2021).
    tensor = [range(first, first + size) for first in range(0, world_size, size)]
    data = [range(first, world_size, size) for first in range(size)]
    # Every rank makes all groups, in the same order; it is a member of one of each kind.
    of_tensor, of_data = (
        [group for ranks in kind if (group := _group(list(ranks))) is not None]
        for kind in (tensor, data)
    )
    _groups.set(ParallelGroups(of_tensor[0], of_data[0]))


def destroy_model_parallel() -> None:
    """Forget the groups, so that others can be made; without groups it has no effect."""
    groups = _groups.get()
    if groups is None:
        return
    _groups.set(None)
    for group in (groups.tensor, groups.data):
        if not group.destroyed:
            dist.destroy_process_group(group)


def model_parallel_is_initialized() -> bool:
    """Whether this rank has groups."""
    return _groups.get() is not None


def get_tensor_model_parallel_group() -> ProcessGroup:
    """The ranks over which a layer is divided; `RuntimeError` before `initialize_model_parallel`,
    like all functions below.
    """
    return _initialised().tensor


def get_tensor_model_parallel_rank() -> int:
    """The position of this rank in its tensor parallel group."""
    return _initialised().tensor.rank


def get_tensor_model_parallel_world_size() -> int:
    """The number of ranks over which a layer is divided."""
    return _initialised().tensor.world_size


def get_data_parallel_group() -> ProcessGroup:
    """The ranks with the same parts of the layers."""
    return _initialised().data


def get_data_parallel_rank() -> int:
    """The number of this rank's tensor parallel group."""
    return _initialised().data.rank


def get_data_parallel_world_size() -> int:
    """The number of tensor parallel groups."""
    return _initialised().data.world_size


def _group(ranks: list[int]) -> ProcessGroup | None:
    group = dist.new_group(ranks, algorithm="auto")
    return group if isinstance(group, ProcessGroup) else None


def _initialised() -> ParallelGroups:
    groups = _groups.get()
    if groups is None:
        raise RuntimeError(_MISSING)
    return groups
