"""Copies of blocks of matrices between virtual addresses, in one launch over many PEs."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from runtime.core.requests import PerPe
from runtime.device.kernels.copies import BlockCopy, copy_blocks
from runtime.device.launches.launch import launch_on
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.products.product_operands import parts_of
from runtime.device.rank.properties import get_device_properties
from runtime.device.regions.regions import Pe
from runtime.language.value import Pointer

T = TypeVar("T", bound=StoredTensor)


def launch_copies(
    name: str, copies: Mapping[Pe, Sequence[BlockCopy]], tensors: Sequence[StoredTensor]
) -> None:
    """Queue copies on the PEs that are their keys; `tensors` are all that they read and write."""
    scratch_bytes = get_device_properties().kernel_scratch_bytes_per_pe
    arguments = (
        PerPe({pe: tuple(each) for pe, each in copies.items()}),
        scratch_bytes // 2 // tensors[0].itemsize,
    )
    launch_on(name, copy_blocks, arguments, tensors, sorted(copies), local=True)


def flat_copy(tensor: T, shape: tuple[int, int]) -> T:
    """The elements of a tensor as a flat matrix of `shape`, placed as any new tensor.

    Each PE copies what it holds. `shape` is that of the tensor with all axes but the last one
    folded.
    """
    parts = parts_of(tensor, shape)
    if parts is None:
        raise ValueError(
            f"a shard of {tensor.name} is no block of a matrix of {shape[0]} x {shape[1]}; place "
            "it on one PE, row_wise, column_wise or replicated"
        )
    target = tensor.new(shape, tensor.dtype)
    source, start = Pointer(tensor.address, tensor.dtype), Pointer(target.address, target.dtype)
    copies: dict[Pe, list[BlockCopy]] = {}
    for part in parts:
        copies.setdefault(part.pes[0], []).append(
            BlockCopy(
                rows=part.rows[1] - part.rows[0],
                columns=part.columns[1] - part.columns[0],
                source=source + part.offset,
                source_pitch=part.pitch,
                target=start + part.rows[0] * shape[1] + part.columns[0],
                target_pitch=shape[1],
            )
        )
    launch_copies("flatten", copies, [tensor, target])
    return target
