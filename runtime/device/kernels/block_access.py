"""Loads and stores of the blocks of an operation on corresponding elements."""

from collections.abc import Sequence

from runtime.device.regions.blocks import MatrixBlock
from runtime.language import tl
from runtime.language.value import Pointer, Value


def loadings(
    group: Sequence[MatrixBlock], tensors: Sequence[tuple[int, Pointer]]
) -> list[list[tl.PendingValue]]:
    """The loads of all blocks. What several of them repeat, such as a row of a bias, is loaded
    once: all PEs load it from one slice.
    """
    repeated: dict[tuple[int, int, tuple[int, int]], tl.PendingValue] = {}

    def loading(block: MatrixBlock, tensor: int, pointer: Pointer) -> tl.PendingValue:
        if all(block.strides[tensor]):
            return tl.load_async(*loaded_block(block, tensor, pointer))
        key = (tensor, block.starts[tensor], block.shape)
        if key not in repeated:
            repeated[key] = tl.load_async(*loaded_block(block, tensor, pointer))
        return repeated[key]

    return [[loading(block, *each) for each in tensors] for block in group]


def loaded_block(
    block: MatrixBlock, tensor: int, pointer: Pointer
) -> tuple[Pointer, tuple[int, int], tuple[int, int] | None]:
    """The arguments of the load of a block."""
    by_row, by_column = block.strides[tensor]
    # Along an axis where it is repeated, a tensor has one element.
    shape = (block.shape[0] if by_row else 1, block.shape[1] if by_column else 1)
    return pointer + block.starts[tensor], shape, descriptor(block, tensor, shape)


def storing(block: MatrixBlock, result: Value, out: Pointer) -> tl.PendingResult:
    """Start to store the result of a block."""
    if result.shape != block.shape:
        # No operand has all elements of the block.
        result = tl.where(tl.full(block.shape, 1, tl.int1), result, result)
    return tl.store_async(out + block.starts[0], result, descriptor(block, 0, block.shape))


def descriptor(block: MatrixBlock, tensor: int, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The strides of a block of a tensor; None if it has no gaps."""
    by_row, by_column = block.strides[tensor]
    if shape[0] > 1 and shape[1] > 1:
        return (by_row, by_column)
    if shape[0] > 1:
        return (by_row, 1)
    return (1, by_column) if by_column > 1 else None
