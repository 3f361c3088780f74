"""Checks of the operands of collectives. Their messages begin as PyTorch's do and add the
values.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from runtime.ccl.call_signature import ranks_text
from runtime.ccl.checked_functions import CheckedFunctions
from runtime.ccl.reduction import ReduceOp
from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.ccl.validators import VALIDATORS
from runtime.core.errors import nearest
from runtime.core.registry import look_up
from runtime.device.collectives.process_group import BACKEND
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.movers import (
    concatenates_locally,
    is_alike,
    is_window,
    movers_of,
    shard_specs,
    writing_movers,
)
from runtime.device.rank.rank_state import ProcessGroup, running_rank
from runtime.model.placement import ShardSpec

_OPS = [f"ReduceOp.{op.name}" for op in ReduceOp]


def check_tensor(name: str, tensor: object) -> None:
    """`TypeError` unless the argument `name` is a tensor."""
    if not isinstance(tensor, StoredTensor):
        problem = (
            f"Expected parameter `{name}` of type torch.Tensor but got {type(tensor)} instead."
        )
        raise TypeError(f"Invalid function argument. {problem}")


def rank_in_group(
    process_group: ProcessGroup, kind: str, name: str, rank: int | None, group_rank: int | None
) -> int:
    """The rank in the group of the peer or root of a call.

    The argument `name` is a global rank, `group_` + `name` a rank of the group; `kind` is its role
    in messages. `ValueError` if both are given, or neither, or if the group has no such rank.
    """
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}: {rank} and {group_rank}")
    if rank is None and group_rank is None:
        raise ValueError(f"Must specify {name} or group_{name}: the {kind} rank")
    known = process_group.sips if group_rank is None else range(process_group.world_size)
    given = rank if group_rank is None else group_rank
    # True is an int and would be rank 1.
    if not isinstance(given, int) or isinstance(given, bool) or given not in known:
        inside = "" if group_rank is None else f", in the group 0 to {process_group.world_size - 1}"
        raise ValueError(
            f"Invalid {kind} rank: {given!r}; the process group has "
            f"{ranks_text(process_group.sips)}{inside}"
        )
    return known.index(given)


def check_op(collective: str, op: object, tensor: StoredTensor) -> None:
    """`ValueError` unless `op` is a `ReduceOp`, `TypeError` if it is not defined for the element
    type.
    """
    if not isinstance(op, ReduceOp):
        raise ValueError(  # noqa: TRY004 - PyTorch raises ValueError
            f"op {op!r} is not supported by {collective} on {BACKEND}{nearest(str(op), _OPS)}"
        )
    if op.is_defined_for(tensor.dtype):
        return
    others = ", ".join(
        f"ReduceOp.{each.name}" for each in ReduceOp if each.is_defined_for(tensor.dtype)
    )
    kind = "non-integral" if op.is_bitwise else "integral"
    raise TypeError(
        f"Cannot use ReduceOp.{op.name} with {kind} inputs ({tensor.dtype!r}); it has {others}"
    )


def check_placement(collective: str, table: QueueTableSpec, tensor: StoredTensor) -> None:
    """`ValueError` if the validator of the algorithm refuses the placement."""
    check_shards(collective, table, shard_specs(tensor))


def check_shards(collective: str, table: QueueTableSpec, shards: Sequence[ShardSpec]) -> None:
    """`ValueError` if the validator of the algorithm refuses that these PEs move elements."""
    config = table.group.algorithm
    validate = look_up(
        config.validator,
        VALIDATORS,
        running_rank().ccl.source,
        f"{config.key_path}.validator",
    )
    functions = CheckedFunctions(running_rank().ccl.source, config.key_path)
    try:
        functions.validate(validate, shards, table.plan.mapping.participants)
    except ValueError as error:
        raise ValueError(f"{collective} with algorithm {config.name!r}: {error}") from None


def check_pair(output: object, source: object, collective: str) -> None:
    """Output and input are two tensors of one type."""
    check_tensor("output", output)
    check_tensor("input", source)
    assert isinstance(output, StoredTensor)
    assert isinstance(source, StoredTensor)
    if output is source:
        raise ValueError(
            f"{collective}: output and input are one tensor; the output must be another one"
        )
    if output.dtype != source.dtype:
        problem = f"{output.dtype!r} is not {source.dtype!r}"
        raise TypeError(f"output tensor must have the same type as input tensor: {problem}")


def check_tensors(name: str, tensors: object, world_size: int) -> tuple[StoredTensor, ...]:
    """The argument `name` as a list of one tensor per rank."""
    if not isinstance(tensors, list | tuple):
        problem = f"of type List[torch.Tensor] but got {type(tensors)} instead."
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` {problem}")
    each_rank = cast("Sequence[object]", tensors)
    if len(each_rank) != world_size:
        problem = "Tensor list input to scatter/gather must match number of collective participants"
        raise ValueError(f"{problem}: {len(each_rank)} tensors, {world_size} ranks")
    for index, each in enumerate(each_rank):
        check_tensor(f"{name}[{index}]", each)
    return tuple(cast("Sequence[StoredTensor]", each_rank))


def check_list(
    name: str, tensors: object, like_name: str, like: StoredTensor, world_size: int
) -> tuple[StoredTensor, ...]:
    """The argument `name` as a list of one tensor per rank, with the shape and type of another
    argument.
    """
    checked = check_tensors(name, tensors, world_size)
    for index, each in enumerate(checked):
        if each.dtype != like.dtype:
            problem = f"{name}[{index}] has {each.dtype!r}, {like_name} has {like.dtype!r}"
            raise ValueError(f"Invalid usage of tensors with different dtypes: {problem}")
        if each.shape != like.shape:
            problem = f"{name}[{index}] has shape {each.shape}, {like_name} has shape {like.shape}"
            raise ValueError(
                f"All tensor operands to scatter/gather must have the same size: {problem}"
            )
    return checked


def check_given(name: str, tensors: object, kind: str) -> None:
    """`ValueError` for a missing list on the root."""
    if tensors is None:
        raise ValueError(f"Argument ``{name}`` must be specified on {kind} rank.")


def check_absent(name: str, tensors: object, kind: str, root: int) -> None:
    """`ValueError` for a list on a rank that is not the root."""
    if tensors:
        problem = f"rank {running_rank().rank} is not the {kind} rank {root}"
        raise ValueError(
            f"Argument ``{name}`` must NOT be specified on non-{kind} ranks.: {problem}"
        )


def check_reads(
    collective: str, name: str, part: StoredTensor, sources: Mapping[str, Sequence[StoredTensor]]
) -> None:
    """`ValueError` unless every PE that holds elements of `part` can address the corresponding
    ones of all sources.
    """
    for argument, index, source in _each(sources):
        if not (is_alike(part, source) or (part.is_flat and source.is_flat)):
            raise _not_placed_like(collective, f"{argument}[{index}]", source, name, part)


def check_writes(
    collective: str, name: str, part: StoredTensor, outputs: Mapping[str, Sequence[StoredTensor]]
) -> tuple[ShardSpec, ...]:
    """The movers of `part` that write all elements of all outputs; `ValueError` if there are
    none.
    """
    movers = movers_of(part)
    if all(is_alike(part, output) for _, _, output in _each(outputs)) and not is_window(part):
        return movers
    check_reads(collective, name, part, outputs)
    written = writing_movers(movers, [each for _, _, each in _each(outputs)], part.nbytes)
    if written is None:
        for argument, index, output in _each(outputs):
            if writing_movers(movers, [output], part.nbytes) is None:
                raise _not_placed_like(collective, f"{argument}[{index}]", output, name, part)
        raise ValueError(
            f"{collective}: some tensors of {', '.join(outputs)} are replicated and some are not; "
            "place them alike"
        )
    return written


def check_parts(
    collective: str, whole: StoredTensor, part: StoredTensor, parts: int, *, writes: bool = False
) -> tuple[ShardSpec, ...]:
    """The movers of `part`, which reach all its elements in `whole`: a tensor of `parts` parts,
    which they write if `writes`. `ValueError` for placements with which they cannot.
    """
    movers = movers_of(part)
    if concatenates_locally(whole, part, parts):
        return movers
    if parts > 1 and (whole.layout is not None or part.layout is not None):
        raise ValueError(
            f"{collective}: tensors that are stored in tiles cannot be split; omit `layout`"
        )
    writers = movers if whole.is_flat and part.is_flat else None
    if writers and writes:
        writers = writing_movers(movers, [whole], part.nbytes, parts)
    if writers is None:
        raise ValueError(
            f"{collective}: the elements of shapes {whole.shape} and {part.shape}, placed by "
            f"{whole.policy} and {part.policy}, do not correspond in memory; place both tensors on "
            'one PE, with "row_wise", or both alike, with "replicate" or with "column_wise" and at '
            "least two axes"
        )
    return writers


def _each(tensors: Mapping[str, Sequence[StoredTensor]]) -> list[tuple[str, int, StoredTensor]]:
    return [
        (name, index, each) for name, listed in tensors.items() for index, each in enumerate(listed)
    ]


def _not_placed_like(
    collective: str, name: str, tensor: StoredTensor, like_name: str, like: StoredTensor
) -> ValueError:
    return ValueError(
        f"{collective}: {name} is not placed like {like_name}: {tensor.policy}, {like.policy}; "
        'tensors on one PE or placed with "row_wise" need not be placed alike'
    )
