"""The operands of an operation whose values are computed again: results of operations before it."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.core.dtypes import BY_NAME
from runtime.core.trace import Operand
from runtime.language.value import Array, row_major
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.written_bytes import WrittenBytes, WrittenMemory
from sip_node.chip.mapping.strided_block import end_of, is_packed, item_bytes

"""The element types by their names in the op log."""


class ByteView(NamedTuple):
    """Elements of type `dtype` among bytes: (shape, bytes of an element), the byte of the first
    one, and strides in bytes.
    """

    shape: tuple[int, ...]
    dtype: Any
    offset: int
    strides: tuple[int, ...]

    def of(self, content: Array) -> Array:
        """The elements."""
        # A view of bytes: types such as bf16 are no buffers.
        view = np.ndarray(self.shape, np.uint8, content, self.offset, self.strides)
        return view.view(self.dtype)[..., 0]


class WholeResult(NamedTuple):
    """The result of operation `number`."""

    number: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The operations of which it has elements."""
        return (self.number,)

    @property
    def layout(self) -> Hashable:
        """Equal for operands which have the same elements of these."""
        return None

    def of(self, results: Sequence[Any]) -> Array:
        """The elements."""
        result: Array = results[self.number]
        return result


class PartOfResult(NamedTuple):
    """A view of the result of operation `number`."""

    number: int
    view: ByteView

    @property
    def numbers(self) -> tuple[int, ...]:
        """The operations of which it has elements."""
        return (self.number,)

    @property
    def layout(self) -> Hashable:
        """Equal for operands which have the same elements of these."""
        return self.view.shape, str(self.view.dtype), self.view.offset, self.view.strides

    def of(self, results: Sequence[Any]) -> Array:
        """The elements."""
        return self.view.of(bytes_of(results[self.number]))


class JoinedResults(NamedTuple):
    """A view of parts of several results: `pieces` of `nbytes`, each with the byte of its begin."""

    nbytes: int
    pieces: tuple[tuple[int, WrittenBytes], ...]
    view: ByteView

    @property
    def numbers(self) -> tuple[int, ...]:
        """The operations of which it has elements."""
        return tuple(piece.number for _, piece in self.pieces)

    @property
    def layout(self) -> Hashable:
        """Equal for operands which have the same elements of these."""
        pieces = tuple((begin, each.end - each.begin, each.offset) for begin, each in self.pieces)
        return pieces, self.nbytes, self.view.shape, str(self.view.dtype), self.view.strides

    def of(self, results: Sequence[Any]) -> Array:
        """The elements."""
        content = np.zeros(self.nbytes, np.uint8)
        for begin, piece in self.pieces:
            nbytes = piece.end - piece.begin
            source = bytes_of(results[piece.number])
            content[begin : begin + nbytes] = source[piece.offset : piece.offset + nbytes]
        return self.view.of(content)


LocalOperand = WholeResult | PartOfResult | JoinedResults


def local_operand(block: Operand, written: WrittenMemory, whole: Sequence[Operand]) -> LocalOperand:
    """The operand in a block of local memory; `whole` are the results by operation.

    Raises `NotRepeated` for a byte that no operation has written.
    """
    if any(stride < 0 for stride in block.strides):
        raise NotRepeated("an operand that is read backwards")
    pieces, item = written.read(block), item_bytes(block.dtype)
    strides = block.strides or row_major(block.shape)
    view = ByteView(
        shape=(*block.shape, item),
        dtype=BY_NAME[block.dtype].numpy,
        offset=0,
        strides=(*(stride * item for stride in strides), 1),
    )
    first = pieces[0]
    if len(pieces) > 1:
        placed = tuple((each.begin - block.address, each) for each in pieces)
        return JoinedResults(end_of(block) - block.address, placed, view)
    result = whole[first.number]
    if (
        not first.offset
        and is_packed(block)
        and (block.shape, block.dtype) == (result.shape, result.dtype)
    ):
        return WholeResult(first.number)
    return PartOfResult(first.number, view._replace(offset=first.offset))


def bytes_of(result: Array) -> Array:
    """The bytes of a result, which has no gaps."""
    return result.reshape(-1).view(np.uint8)
