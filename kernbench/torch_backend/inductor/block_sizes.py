"""Block sizes of a generated kernel, for the PEs and the TCM of the device.

Programs of a launch run in rounds, one on each PE. The time of a round is that of a command, of
which a program has a few, and of the elements of a block; so the blocks are those with the least
rounds x (elements + `_OVERHEAD`), the largest of equal ones. They follow from the sizes of the
launch, so that a graph with dynamic shapes has blocks for each of its shapes.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

_OVERHEAD = 4096
"""The elements whose commands take the time of a program without elements."""
_LEAST = 512
"""The elements of a block below which its time is that of its commands."""
_VALUES_SHARE = 2
"""Values have half of TCM; the rest is for gaps between them."""
_ELEMENT_BYTES = 4
_LONGEST = 1 << 16
"""The longest block along an axis."""


class KernelSizes(NamedTuple):
    """The sizes of a launch: elements of the axes over programs and of those that a program
    reduces, the names of their blocks, and the number of values that are in TCM at once. `kept` are
    the elements of a row that a kernel always has in TCM.
    """

    parallel: Mapping[str, int]
    reduced: Mapping[str, int]
    kept: int
    values: int


class DeviceSizes(NamedTuple):
    """The PEs of the device, and the bytes of values in the TCM of one."""

    pes: int
    tcm_bytes: int


def block_sizes(kernel: KernelSizes, device: DeviceSizes) -> dict[str, int]:
    """The block of each axis."""
    return min(_choices(kernel, device), key=lambda each: _cost(kernel, device, each))


def nearby_sizes(kernel: KernelSizes, device: DeviceSizes, count: int) -> Sequence[dict[str, int]]:
    """The blocks that are likely the best `count` ones."""
    choices = sorted(_choices(kernel, device), key=lambda each: _cost(kernel, device, each))
    return choices[:count]


def _cost(
    kernel: KernelSizes, device: DeviceSizes, blocks: Mapping[str, int]
) -> tuple[int, int, int]:
    programs = prod(-(-size // blocks[name]) for name, size in kernel.parallel.items())
    rounds = -(-programs // device.pes)
    steps = prod(-(-size // blocks[name]) for name, size in kernel.reduced.items())
    elements = max(_LEAST, prod(blocks.values()) * kernel.kept)
    # The last axis of a block has neighbours in memory: a longer one has fewer rows to transfer.
    innermost = next(iter(blocks.values()), 1)
    return rounds * steps * (elements + _OVERHEAD), programs, -innermost


def _choices(kernel: KernelSizes, device: DeviceSizes) -> Iterator[dict[str, int]]:
    """All blocks that fit; the smallest ones if none does."""
    budget = device.tcm_bytes // (_VALUES_SHARE * _ELEMENT_BYTES * kernel.values * kernel.kept)
    sizes = {**kernel.parallel, **kernel.reduced}
    smallest = dict.fromkeys(sizes, 1)
    any_fits = False
    for lengths in product(*(_lengths(size) for size in sizes.values())):
        if prod(lengths) <= budget:
            any_fits = True
            yield dict(zip(sizes, lengths, strict=True))
    if not any_fits:
        yield smallest


def _lengths(size: int) -> list[int]:
    """Powers of 2 up to the first one that is not below a size."""
    last = min(max(size - 1, 0).bit_length(), _LONGEST.bit_length() - 1)
    return [1 << each for each in range(last + 1)]
