"""The kernel of independent products whose blocks on a PE share what they read."""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Value
from runtime.model.placement import Span


class StoredRegion(NamedTuple):
    """Rows at a pitch in memory, which a PE loads once."""

    pointer: Pointer
    shape: tuple[int, int]
    pitch: int


class RegionPart(NamedTuple):
    """An operand: rows and columns of a loaded region, or these transposed."""

    region: int
    rows: Span
    columns: Span
    is_turned: bool


class SharingBlock(NamedTuple):
    """A block of a result in memory, its operands and its row of bias."""

    a: RegionPart
    b: RegionPart
    bias: RegionPart | None
    out: StoredRegion


def multiply_sharing(regions: Sequence[StoredRegion], blocks: Sequence[SharingBlock]) -> None:
    """Kernel: the blocks `a @ b + bias`. A product runs once its regions are in TCM, beside the
    loads of the others.
    """
    loads = [tl.load_async(each.pointer, each.shape, (each.pitch, 1)) for each in regions]
    loaded = dict[int, Value]()

    def part(each: RegionPart) -> Value:
        if each.region not in loaded:
            loaded[each.region] = tl.wait(loads[each.region])
        value = loaded[each.region][slice(*each.rows), slice(*each.columns)]
        return value.mT if each.is_turned else value

    pending = list[tl.PendingResult]()
    for block in blocks:
        out = tl.ref(block.out.pointer, block.out.shape, strides=(block.out.pitch, 1))
        bias = None if block.bias is None else part(block.bias)
        pending.append(tl.composite("gemm", part(block.a), part(block.b), out, bias=bias))
    for each in pending:
        tl.wait(each)
