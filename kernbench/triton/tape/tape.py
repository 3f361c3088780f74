"""The commands of a program that wait to be issued: Python runs ahead of the PE.

A `TapeStorage` is a value in TCM with an address of its own, a `TapeBlock` a view of one. Commands
name blocks, and each is written before it is read. A storage is in use as long as a command on the
tape reads it, or a value of the program holds it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, cast

from msgspec import Struct

from runtime.core.dtypes import DType
from runtime.language.inference import infer
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.value import Pointer, Shape, Strides, Value, row_major
from runtime.language.views import View


class TapeStorage:
    """A value in TCM. `holders` are the objects of the program that may still use it, `value` is
    its memory once a command writes it; `pieces` is whether several commands write parts of it.
    """

    __slots__ = ("dtype", "holders", "last", "pieces", "shape", "value")

    def __init__(self, shape: Shape, dtype: DType, *, pieces: bool = False) -> None:
        self.shape, self.dtype, self.pieces = shape, dtype, pieces
        self.holders = 0
        self.last = -1
        self.value: Value | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    def whole(self) -> "TapeBlock":
        """All elements."""
        return TapeBlock(self, View(self.shape, row_major(self.shape)))


class TapeBlock(NamedTuple):
    """A view of a storage."""

    storage: TapeStorage
    view: View

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self.view.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.storage.dtype

    @property
    def is_whole(self) -> bool:
        """Whether it has all elements of the storage, in their order."""
        return (
            not self.view.offset
            and prod(self.view.shape) == prod(self.storage.shape)
            and self.view.strides == row_major(self.view.shape)
        )

    @property
    def is_reshaped(self) -> bool:
        """Whether it has all elements of the storage in their order, perhaps with axes of length 1
        whose stride does not matter.
        """
        shape, strides, offset = self.view
        if offset or prod(shape) != prod(self.storage.shape):
            return False
        axes = [each for each in zip(shape, strides, strict=True) if each[0] != 1]
        lengths = tuple(length for length, _ in axes)
        return tuple(step for _, step in axes) == row_major(lengths)


Operand = TapeBlock | float
Part = tuple[View, Pointer, Strides]
"""A view of a storage, and the block of memory that has the same elements."""


Described = Callable[[], str]
"""The text for a mask in messages, made where an error needs it."""


class TapeCommand:
    """A command of the tape, at a source line of the kernel."""

    __slots__ = ("line",)
    line: str

    def reads(self) -> Sequence[TapeStorage]:
        """The storages that it reads."""
        return ()

    def writes(self) -> TapeStorage | None:
        """The storage that it writes."""
        return None


class LoadCommand(TapeCommand):
    """Boxes of memory, and lists of rows, to parts of a storage; `site` is where the kernel calls
    it, and `masked` describes its mask.
    """

    __slots__ = ("boxes", "is_issued", "masked", "rows", "site", "storage")

    def __init__(
        self,
        storage: TapeStorage,
        boxes: Sequence[Part],
        rows: Sequence["GatheredRows"],
        site: object,
        masked: Described,
    ) -> None:
        self.storage, self.boxes, self.rows, self.site = storage, boxes, rows, site
        self.masked = masked
        self.is_issued = False

    def writes(self) -> TapeStorage:
        """See `TapeCommand`."""
        return self.storage


class GatheredRows(NamedTuple):
    """Rows of a gather: `numbers` count `pitch` elements from `pointer` on; each has `shape`."""

    view: View
    pointer: Pointer
    numbers: tuple[int, ...]
    shape: Shape
    strides: Strides


class StoreCommand(TapeCommand):
    """Parts of the storage of a block to boxes of memory; `masked` describes the mask."""

    __slots__ = ("block", "boxes", "masked")

    def __init__(self, block: TapeBlock, boxes: Sequence[Part], masked: Described) -> None:
        self.block, self.boxes, self.masked = block, boxes, masked

    def reads(self) -> Sequence[TapeStorage]:
        """See `TapeCommand`."""
        return (self.block.storage,)


class AtomicPart(NamedTuple):
    """Views of the operands and of the old elements, and the block of memory that has these."""

    operands: tuple[View, ...]
    old: View
    pointer: Pointer
    strides: Strides


class AtomicCommand(TapeCommand):
    """Combines parts of `operands`, of "cas" two, with blocks of memory; the old elements go to
    `target` if it is read. `masked` describes the mask.
    """

    __slots__ = ("acquires", "masked", "operands", "operation", "parts", "releases", "target")

    def __init__(
        self,
        operation: str,
        operands: Sequence[TapeBlock],
        target: TapeStorage,
        parts: Sequence[AtomicPart],
        order: tuple[bool, bool],
        masked: Described,
    ) -> None:
        self.operation, self.operands, self.target = operation, operands, target
        self.parts, self.masked = parts, masked
        self.acquires, self.releases = order

    def reads(self) -> Sequence[TapeStorage]:
        """See `TapeCommand`."""
        return [each.storage for each in self.operands]

    def writes(self) -> TapeStorage:
        """See `TapeCommand`."""
        return self.target

    def blocks(self) -> list[UsedBlock]:
        """The blocks of memory."""
        return [UsedBlock(each.pointer, each.old.shape, each.strides) for each in self.parts]


class MathStep(TapeCommand):
    """An operation of the vector engine, whose result is `target`."""

    __slots__ = ("name", "operands", "options", "target")

    def __init__(
        self,
        name: str,
        operands: tuple[Operand, ...],
        target: TapeBlock,
        options: MathOptions,
    ) -> None:
        self.name, self.operands, self.target, self.options = name, operands, target, options

    def reads(self) -> Sequence[TapeStorage]:
        """See `TapeCommand`."""
        return [each.storage for each in self.operands if isinstance(each, TapeBlock)]

    def writes(self) -> TapeStorage:
        """See `TapeCommand`."""
        return self.target.storage


class ProductCommand(TapeCommand):
    """A matrix product, `acc + a @ b` to a storage; or to memory, as the store `out` does."""

    __slots__ = ("a", "acc", "b", "is_issued", "out", "target")

    def __init__(
        self, a: TapeBlock, b: TapeBlock, acc: TapeBlock | None, target: TapeBlock
    ) -> None:
        self.a, self.b, self.acc, self.target = a, b, acc, target
        self.out: StoreCommand | None = None
        self.is_issued = False

    def reads(self) -> Sequence[TapeStorage]:
        """See `TapeCommand`."""
        given = (self.a, self.b, self.acc)
        return [each.storage for each in given if each is not None]

    def writes(self) -> TapeStorage | None:
        """See `TapeCommand`."""
        return self.target.storage if self.out is None else None


class TapeCounts(Struct):
    """Descriptors of the loads and stores of a kernel: boxes, rows of gathers, single elements."""

    boxes: int = 0
    rows: int = 0
    elements: int = 0


_Signature = tuple[tuple[object, object], ...]


def result_type(
    name: str, operands: Sequence[Operand], options: MathOptions = NO_OPTIONS
) -> tuple[Shape, DType]:
    """The shape and the type of a result; the errors are those of `infer`."""
    signature = tuple(
        [
            (each.shape, each.dtype) if isinstance(each, TapeBlock) else (type(each), each)
            for each in operands
        ]
    )
    return _inferred(name, signature, options)


# A kernel repeats its operations on blocks of a few shapes.
@lru_cache(maxsize=4096)
def _inferred(name: str, signature: _Signature, options: MathOptions) -> tuple[Shape, DType]:
    operands: list[Value | float] = [
        cast("float", each)
        if isinstance(kind, type)
        else Value(cast("Shape", kind), cast("DType", each), None)
        for kind, each in signature
    ]
    return infer(name, operands, options)
