"""Copies of blocks of matrices between virtual addresses, in one launch over many PEs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runtime.core.requests import PerPe
from runtime.device.launches.launch import launch_on
from runtime.device.products.product_operands import parts_of
from runtime.language import tl
from runtime.language.value import Pointer
from runtime.torch.ahbm import get_device_properties
from runtime.torch.tensors.creation import empty
from runtime.torch.tensors.tensor import Tensor

Pe = tuple[int, int]


@dataclass(frozen=True)
class BlockCopy:
    """`rows` x `columns` elements from one matrix to another; a pitch is the distance of rows in
    elements.
    """

    rows: int
    columns: int
    source: Pointer
    source_pitch: int
    target: Pointer
    target_pitch: int


def copy_blocks(copies: Sequence[BlockCopy], at_most: int) -> None:
    """Kernel: make copies, with at most `at_most` elements in TCM at once."""
    for copy in copies:
        for left in range(0, copy.columns, at_most):
            columns = min(at_most, copy.columns - left)
            step = max(at_most // columns, 1)
            for top in range(0, copy.rows, step):
                shape = (min(step, copy.rows - top), columns)
                source = copy.source + top * copy.source_pitch + left
                target = copy.target + top * copy.target_pitch + left
                with tl.scratch():
                    block = tl.load(source, shape, strides=(copy.source_pitch, 1))
                    tl.store(target, block, strides=(copy.target_pitch, 1))


def launch_copies(
    name: str, copies: Mapping[Pe, Sequence[BlockCopy]], tensors: Sequence[Tensor]
) -> None:
    """Queue copies on the PEs that are their keys; `tensors` are all that they read and write."""
    scratch_bytes = get_device_properties().kernel_scratch_bytes_per_pe
    arguments = (
        PerPe({pe: tuple(each) for pe, each in copies.items()}),
        scratch_bytes // 2 // tensors[0].itemsize,
    )
    launch_on(name, copy_blocks, arguments, tensors, sorted(copies), local=True)


def flat_copy(tensor: Tensor, shape: tuple[int, int]) -> Tensor:
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
    target = empty(shape, dtype=tensor.dtype)
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
