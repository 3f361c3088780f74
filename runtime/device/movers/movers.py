"""The movers of a collective: the elements of each PE, and where the other tensors have them.

A collective has one tensor on every rank that decides which PE moves what: the tensor itself where
there is one, the *part* of a rank where another tensor holds the parts of all ranks. Its *movers*
are shards: a PE exchanges the elements of its shard with the PEs of equal coordinates in the other
SIPs. Elements of other tensors are addressed in one of two ways:

- *flat*: both virtual ranges hold the elements in row-major order, so an element of the part has
  the same offset in every flat tensor. Their shards may lie on any PEs.
- *local*: every PE holds its own shards of both tensors, and splits and concatenates them along
  axis 0. So `column_wise` is possible, which is not flat.

Every rank must have equal movers. They follow from the placement of a whole tensor. A window may
begin anywhere in its tensor, and elsewhere on every rank, so its elements are dealt to PEs by their
number alone: one PE per packet of `_BYTES_A_PE`, at most all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer
from runtime.model.placement import ShardSpec

_BYTES_A_PE = 4096

Written = Iterable[tuple[ShardSpec, int]]
"""(mover, offset in bytes) of the elements that PEs write to a tensor."""


def movers_of(tensor: StoredTensor) -> tuple[ShardSpec, ...]:
    """The movers of a tensor: its shards, or PEs by the number of elements for a window.

    `ValueError` for tiles of which a PE holds several.
    """
    specs = shard_specs(tensor)
    if is_window(tensor) and tensor.is_flat and not _has_replicas(specs):
        return spread(tensor.numel(), tensor.itemsize)
    if len({_pe(spec) for spec in specs}) < len(specs):
        raise ValueError(
            f"{tensor.name} has {len(specs)} tiles on {len({_pe(spec) for spec in specs})} PEs: "
            "collectives take one shard from each PE; deal not more tiles than PEs, or use a "
            "DPPolicy"
        )
    return specs


def spread(numel: int, itemsize: int) -> tuple[ShardSpec, ...]:
    """Movers of `numel` row-major elements: about equal shares, of at least one packet each, on the
    first PEs of the SIP.
    """
    state = running_rank()
    pes = state.pes
    count = max(1, min(numel * itemsize // _BYTES_A_PE, pes.cubes * pes.per_cube))
    return tuple(
        ShardSpec(
            sip=state.rank,
            cube=pes.at(index)[0],
            pe=pes.at(index)[1],
            offset_bytes=start * itemsize,
            nbytes=(stop - start) * itemsize,
            spans=((start, stop),),
        )
        for index, (start, stop) in enumerate(chunk_bounds(numel, count))
    )


def dealt(numel: int, itemsize: int, shards: Sequence[ShardSpec]) -> tuple[ShardSpec, ...]:
    """Movers of `numel` row-major elements on the PEs of `shards`, in about equal shares."""
    return tuple(
        replace(
            spec,
            offset_bytes=start * itemsize,
            nbytes=(stop - start) * itemsize,
            spans=((start, stop),),
        )
        for spec, (start, stop) in zip(shards, chunk_bounds(numel, len(shards)), strict=True)
    )


def pointers(tensor: StoredTensor, movers: Sequence[ShardSpec], offset_bytes: int = 0) -> PerPe:
    """The kernel argument with which every mover gets the virtual address of its elements."""
    start = tensor.address + offset_bytes
    return PerPe({_pe(spec): Pointer(start + spec.offset_bytes, tensor.dtype) for spec in movers})


def numels(movers: Sequence[ShardSpec], itemsize: int) -> PerPe:
    """The kernel argument with the number of elements of every mover."""
    return PerPe({_pe(spec): spec.nbytes // itemsize for spec in movers})


def pointers_by_rank(each_rank: Sequence[PerPe], movers: Sequence[ShardSpec]) -> PerPe:
    """One kernel argument with a tuple of pointers per PE, which the kernel indexes by rank."""
    return PerPe(
        {_pe(spec): tuple(each.values[_pe(spec)] for each in each_rank) for spec in movers}
    )


def parts_of(
    whole: StoredTensor, part: StoredTensor, movers: Sequence[ShardSpec], parts: int
) -> PerPe:
    """The elements of every mover in each of the parts of which `whole` consists."""
    if concatenates_locally(whole, part, parts):
        return parts_on_own_pes(whole, movers, parts)
    return pointers_by_rank(
        [pointers(whole, movers, rank * part.nbytes) for rank in range(parts)], movers
    )


def parts_on_own_pes(whole: StoredTensor, movers: Sequence[ShardSpec], parts: int) -> PerPe:
    """The parts of which the own shard of every mover consists, each as large as its elements."""
    shards = {_pe(spec): spec for spec in shard_specs(whole)}
    return PerPe(
        {
            _pe(spec): tuple(
                Pointer(
                    whole.address + shards[_pe(spec)].offset_bytes + rank * spec.nbytes,
                    whole.dtype,
                )
                for rank in range(parts)
            )
            for spec in movers
        }
    )


def writing_movers(
    movers: tuple[ShardSpec, ...], outputs: Sequence[StoredTensor], part_bytes: int, parts: int = 1
) -> tuple[ShardSpec, ...] | None:
    """The movers that write all elements of flat outputs, each of `parts` parts: every replica is
    written once. None if neither all movers nor those with distinct elements do that.
    """
    distinct = tuple({spec.offset_bytes: spec for spec in reversed(movers)}.values())[::-1]
    for candidate in (distinct,) if len(distinct) == len(movers) else (movers, distinct):
        written = [
            (spec, rank * part_bytes + spec.offset_bytes)
            for spec in candidate
            for rank in range(parts)
        ]
        if all(_writes_once(shard_specs(output), written) for output in outputs):
            return candidate
    return None


def is_window(tensor: StoredTensor) -> bool:
    """Whether the tensor is a part of its storage."""
    storage = tensor.storage
    sizes = {shard.spec.offset_bytes: shard.spec.nbytes for shard in storage.shards}
    return (tensor.address, tensor.nbytes) != (storage.address, sum(sizes.values()))


def is_alike(first: StoredTensor, second: StoredTensor) -> bool:
    """Whether two tensors of one shape have equal shards on equal PEs."""
    return (first.layout, shard_specs(first)) == (second.layout, shard_specs(second))


def concatenates_locally(whole: StoredTensor, part: StoredTensor, parts: int) -> bool:
    """Whether every PE's shard of `whole` is its `parts` shards of `part` one after the other.

    `whole` has the shape of `torch.cat` of the parts along axis 0 or of `torch.stack`.
    """
    if whole.layout != part.layout or (parts > 1 and whole.layout is not None):
        return False
    if is_window(whole) or is_window(part) or len(whole.shards) != len(part.shards):
        return False
    return all(
        _pe(spec) == _pe(other) and _concatenates(spec, other, part.shape, parts)
        for spec, other in zip(shard_specs(whole), shard_specs(part), strict=True)
    )


def shard_specs(tensor: StoredTensor) -> tuple[ShardSpec, ...]:
    """The shards of a tensor without their addresses."""
    return tuple(shard.spec for shard in tensor.shards)


def shards_text(specs: Sequence[ShardSpec]) -> str:
    """The PEs that hold or move elements, and their bytes, in one line."""
    first, last = (f"cube {spec.cube} pe {spec.pe}" for spec in (specs[0], specs[-1]))
    if len(specs) == 1:
        return first
    # Runs of equal sizes: ranks agree on the size of every shard.
    sizes = [(nbytes, len(list(run))) for nbytes, run in groupby(spec.nbytes for spec in specs)]
    text = (
        f"{sizes[0][0]} B"
        if len(sizes) == 1
        else ", ".join(f"{count} x {nbytes} B" for nbytes, count in sizes)
    )
    return f"{len(specs)} PEs with {text}, {first} to {last}"


def placement_text(tensor: StoredTensor) -> str:
    """The coordinates of the shards of a tensor, in one line."""
    return shards_text(shard_specs(tensor))


def _pe(spec: ShardSpec) -> tuple[int, int]:
    return spec.cube, spec.pe


def _has_replicas(specs: Sequence[ShardSpec]) -> bool:
    return len({spec.offset_bytes for spec in specs}) < len(specs)


def _concatenates(whole: ShardSpec, part: ShardSpec, shape: tuple[int, ...], parts: int) -> bool:
    along, *across = whole.spans or ((0, 1),)
    concatenated = bool(shape) and part.spans[0] == (0, shape[0]) and along == (0, parts * shape[0])
    stacked = along == (0, parts) and tuple(across) == part.spans
    return (
        (concatenated and tuple(across) == part.spans[1:])
        or stacked
        or (parts == 1 and whole.spans == part.spans)
    )


def _writes_once(shards: tuple[ShardSpec, ...], written: Sequence[tuple[ShardSpec, int]]) -> bool:
    """Whether the PEs write every byte of every replica exactly once; a PE reaches the replica
    that it maps.
    """
    if not _has_replicas(shards):
        return len({offset for _, offset in written}) == len(written)
    covered = [0] * len(shards)
    for mover, offset in written:
        for spec in {shard.offset_bytes: shard for shard in shards}.values():
            overlap = min(offset + mover.nbytes, spec.offset_bytes + spec.nbytes) - max(
                offset, spec.offset_bytes
            )
            if overlap > 0:
                covered[_mapped_replica(shards, spec.offset_bytes, mover)] += overlap
    return covered == [spec.nbytes for spec in shards]


def _mapped_replica(shards: tuple[ShardSpec, ...], offset_bytes: int, pe: ShardSpec) -> int:
    """The replica that a PE maps: its own, else the first one of its cube, else the first one."""
    replicas = [index for index, spec in enumerate(shards) if spec.offset_bytes == offset_bytes]
    return min(
        replicas,
        key=lambda index: (
            shards[index].cube != pe.cube,
            shards[index].cube != pe.cube or shards[index].pe != pe.pe,
            index,
        ),
    )
