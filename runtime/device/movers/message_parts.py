"""The parts of a message between two ranks: the elements that each PE moves.

The elements of a flat tensor without replicas are dealt over the PEs anew: both ends compute the
deal from the number of elements alone, so the shapes and placements of both may differ. Of every
other tensor a PE moves its own shard, and both ends must have equal shapes and placements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.movers import placement_text
from runtime.language.value import Pointer

Pe = tuple[int, int]


@dataclass(frozen=True)
class MessageParts:
    """The part of each PE, (cube, pe): a pointer to its first element, its number of elements.

    `text` describes the message; it is equal for both ends whose parts fit together.
    """

    starts: dict[Pe, object]
    sizes: dict[Pe, int]
    text: str


def message_parts(tensor: StoredTensor, pes: Sequence[Pe], least_bytes: int) -> MessageParts:
    """The parts of a message with the elements of `tensor`.

    A flat tensor is dealt evenly over the first of `pes`, as many as get `least_bytes` each.
    `ValueError` for tiles of which a PE holds several.
    """
    numel, size = tensor.numel(), tensor.itemsize
    if not tensor.is_flat or sum(shard.spec.nbytes for shard in tensor.shards) != tensor.nbytes:
        return _own_shards(tensor)
    count = max(min(tensor.nbytes // least_bytes, len(pes)), 1)
    bounds = [index * numel // count for index in range(count + 1)]
    parts = list(zip(pes, bounds, bounds[1:], strict=False))
    return MessageParts(
        {pe: Pointer(tensor.address + begin * size, tensor.dtype) for pe, begin, _ in parts},
        {pe: end - begin for pe, begin, end in parts},
        f"{numel:,} elements of {tensor.dtype.name}",
    )


def _own_shards(tensor: StoredTensor) -> MessageParts:
    by_pe = {(shard.spec.cube, shard.spec.pe): shard.spec for shard in tensor.shards}
    if len(by_pe) < len(tensor.shards):
        raise ValueError(
            f"{tensor.name} of shape {tensor.shape} has {len(tensor.shards)} tiles on "
            f"{len(by_pe)} PEs: send and recv take one shard from each PE; deal not more "
            "tiles than PEs, or use a DPPolicy"
        )
    # The text names the first and the last PE, and must differ wherever the shards do.
    shards = sorted((shard.spec.cube, shard.spec.pe, shard.spec.spans) for shard in tensor.shards)
    number = crc32(repr((shards, tensor.layout)).encode())
    return MessageParts(
        {
            pe: Pointer(tensor.address + spec.offset_bytes, tensor.dtype)
            for pe, spec in by_pe.items()
        },
        {pe: spec.nbytes // tensor.itemsize for pe, spec in by_pe.items()},
        f"shape {tensor.shape} of {tensor.dtype.name} on {placement_text(tensor)}, "
        f"split {number:08x}",
    )
