"""Checks of the operands of collectives. Their messages begin as PyTorch's do and add the
values.
"""

from collections.abc import Sequence
from typing import cast

from runtime.ccl.call_signature import ranks_text
from runtime.ccl.checked_functions import CheckedFunctions
from runtime.ccl.reduction import ReduceOp
from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.ccl.validators import VALIDATORS
from runtime.core.errors import nearest
from runtime.core.registry import look_up
from runtime.model.placement import ShardSpec
from runtime.torch.distributed.process_group import BACKEND
from runtime.torch.rank_state import ProcessGroup, running_rank
from runtime.torch.tensor import Tensor

_OPS = [f"ReduceOp.{op.name}" for op in ReduceOp]


def check_tensor(name: str, tensor: object) -> None:
    """`TypeError` unless the argument `name` is a tensor."""
    if not isinstance(tensor, Tensor):
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


def check_op(collective: str, op: object, tensor: Tensor) -> None:
    """`ValueError` unless `op` is a `ReduceOp`, `TypeError` if it is not defined for the element
    type.
    """
    if not isinstance(op, ReduceOp):
        raise ValueError(  # noqa: TRY004 - PyTorch raises ValueError
            f"op {op!r} is not supported by {collective} on {BACKEND}{nearest(str(op), _OPS)}"
        )
    if op is ReduceOp.AVG and not tensor.dtype.is_floating_point:
        others = ", ".join(name for name in _OPS if name != "ReduceOp.AVG")
        raise TypeError(
            f"Cannot use ReduceOp.AVG with integral inputs ({tensor.dtype!r}); it has {others}"
        )


def check_placement(collective: str, table: QueueTableSpec, tensor: Tensor) -> None:
    """`ValueError` if the validator of the algorithm refuses the placement."""
    config = table.group.algorithm
    validate = look_up(
        config.validator,
        VALIDATORS,
        running_rank().ccl.source,
        f"algorithms.{config.name}.validator",
    )
    functions = CheckedFunctions(running_rank().ccl.source, config.name)
    try:
        functions.validate(
            validate, [shard.spec for shard in tensor.shards], table.plan.mapping.participants
        )
    except ValueError as error:
        raise ValueError(f"{collective} with algorithm {config.name!r}: {error}") from None


def check_list(tensors: object, like: Tensor, world_size: int) -> None:
    """The list of `all_gather` has one tensor per rank, with the shape, type and placement of the
    input.
    """
    if not isinstance(tensors, list | tuple):
        problem = f"of type List[torch.Tensor] but got {type(tensors)} instead."
        raise TypeError(f"Invalid function argument. Expected parameter `tensor_list` {problem}")
    outputs = cast("Sequence[object]", tensors)
    if len(outputs) != world_size:
        problem = "Tensor list input to scatter/gather must match number of collective participants"
        raise ValueError(f"{problem}: {len(outputs)} tensors, {world_size} ranks")
    for index, output in enumerate(outputs):
        check_tensor(f"tensor_list[{index}]", output)
        assert isinstance(output, Tensor)
        if output.dtype != like.dtype:
            problem = f"tensor_list[{index}] has {output.dtype!r}, tensor has {like.dtype!r}"
            raise ValueError(f"Invalid usage of tensors with different dtypes: {problem}")
        if output.shape != like.shape:
            problem = (
                f"tensor_list[{index}] has shape {output.shape}, tensor has shape {like.shape}"
            )
            raise ValueError(
                f"All tensor operands to scatter/gather must have the same size: {problem}"
            )
        if _layout(output) != _layout(like):
            raise ValueError(
                f"all_gather: tensor_list[{index}] is not placed like tensor: {output.policy}, "
                f"{like.policy}"
            )


def check_parts(collective: str, whole: Tensor, part: Tensor, parts: int) -> None:
    """`ValueError` unless every PE can concatenate `parts` shards of `part` to its shard of
    `whole`.

    `whole` has the shape of `torch.cat` of the parts along axis 0 or of `torch.stack`, or any shape
    if every PE holds all elements of both tensors.
    """
    specs = [
        (each.spec, other.spec) for each, other in zip(whole.shards, part.shards, strict=False)
    ]
    fits = len(whole.shards) == len(part.shards) and (
        all(_is_all(spec, whole) and _is_all(of_part, part) for spec, of_part in specs)
        or all(_concatenates(spec, of_part, part.shape, parts) for spec, of_part in specs)
    )
    _check_local(
        collective,
        (whole, part),
        fits=fits and all(a.coordinates == b.coordinates for a, b in specs),
        parts=parts,
    )


def check_split(output: Tensor, source: Tensor, parts: int) -> None:
    """`ValueError` unless every PE can cut its shards of the tensors of all-to-all into `parts`
    along axis 0.
    """
    if output.shape != source.shape:
        problem = f"the output has shape {output.shape}, the input {source.shape}"
        raise ValueError(
            f"all_to_all_single with equal splits: both tensors must have one shape; {problem}"
        )
    if not source.shape or source.shape[0] % parts:
        problem = f"shape {source.shape}, {parts} ranks"
        raise ValueError(f"Tensor's dim 0 does not divide equally across group size: {problem}")
    whole = all(shard.spec.spans[0] == (0, source.shape[0]) for shard in source.shards)
    fits = _shard_specs(output) == _shard_specs(source) and (whole or parts == 1)
    _check_local("all_to_all_single", (output, source), fits=fits, parts=parts)


def check_equal_splits(name: str, sizes: object, tensor: Tensor, parts: int) -> None:
    """`ValueError` for split sizes that are not those of equal parts; None and an empty list stand
    for equal parts.
    """
    if sizes is None or not tensor.shape:
        return
    # PyTorch accepts an empty list for equal parts, too.
    given = list(cast("Sequence[int]", sizes))
    if given and given != [tensor.shape[0] // parts] * parts:
        lengths = f"axis 0 of shape {tensor.shape} is cut into {parts} equal parts"
        advice = f"{lengths}; pad them to one size, or use send and recv"
        raise ValueError(f"all_to_all_single with {name} {given}: {advice}")


def placement_text(tensor: Tensor) -> str:
    """The coordinates of the shards of a tensor, in one line."""
    specs = [shard.spec for shard in tensor.shards]
    first, last = (f"cube {spec.cube} pe {spec.pe}" for spec in (specs[0], specs[-1]))
    return (
        first
        if len(specs) == 1
        else f"{len(specs)} PEs with {specs[0].nbytes} B, {first} to {last}"
    )


def _check_local(
    collective: str, tensors: tuple[Tensor, Tensor], *, fits: bool, parts: int
) -> None:
    first, second = tensors
    if not fits:
        raise ValueError(
            f"{collective}: a PE splits and concatenates along axis 0 only what it holds itself, "
            f"which shapes {first.shape} and {second.shape} placed by {first.policy} and "
            f"{second.policy} do not allow; place both tensors alike, on one PE, "
            'with "replicate", or with "column_wise" and at least two axes'
        )
    if first.layout != second.layout or (parts > 1 and first.layout is not None):
        raise ValueError(
            f"{collective}: tensors that are stored in tiles cannot be split; omit `layout`"
        )


def _concatenates(whole: ShardSpec, part: ShardSpec, shape: tuple[int, ...], parts: int) -> bool:
    along, *across = whole.spans or ((0, 1),)
    concatenated = bool(shape) and part.spans[0] == (0, shape[0]) and along == (0, parts * shape[0])
    stacked = along == (0, parts) and tuple(across) == part.spans
    return (
        (concatenated and tuple(across) == part.spans[1:])
        or stacked
        or (parts == 1 and whole.spans == part.spans)
    )


def _is_all(spec: ShardSpec, tensor: Tensor) -> bool:
    return spec.spans == tuple((0, length) for length in tensor.shape)


def _shard_specs(tensor: Tensor) -> list[ShardSpec]:
    return [shard.spec for shard in tensor.shards]


def _layout(tensor: Tensor) -> object:
    return _shard_specs(tensor), tensor.layout
