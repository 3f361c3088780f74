"""The bounds of indices, which kernels check where they use them, as a GPU kernel asserts them.

A kernel cannot raise in the program that launched it, which has gone on. It reports the first index
out of bounds, takes 0 in its place, and the program raises the error when it next waits.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from runtime.language.context import running_kernel
from runtime.language.value import Array, Value


class HostIndices:
    """Indices that are known to the host when a kernel begins, in row-major order. In a run
    without data the kernel uses them in place of those that it loads: they are addresses, on which
    times depend.
    """

    def __init__(self, compute: Callable[[], Array]) -> None:
        self._compute = compute

    @cached_property
    def numbers(self) -> Array:
        """The indices, of all PEs."""
        return self._compute()


class IndexBounds(NamedTuple):
    """Indices from `first` on and less than `end`, or equal to `other`; `of` names what they are
    indices of. `known` are all of them, in a run without data. `report` takes the error of one out
    of bounds; without it the kernel raises it, which ends the run.
    """

    end: int
    of: str
    first: int = 0
    other: int | None = None
    known: HostIndices | None = None
    report: Callable[[IndexError], None] | None = None

    @classmethod
    def of_axis(
        cls, shape: Sequence[int], axis: int, *, counts_from_end: bool = False
    ) -> "IndexBounds":
        """Bounds of an axis of a tensor, with negative ones if an index may count from the end."""
        length, number = shape[axis], axis % len(shape)
        of = f"dimension {number} with size {length}"
        return cls(length, of, first=-length if counts_from_end else 0)

    def check(self, indices: Value, start: int = 0) -> None:
        """Report an index out of bounds, or raise it. It takes no simulated time. In a run without
        data, `indices` has those known from number `start` on; others are not checked.
        """
        elements = running_kernel().elements_of(indices)
        if elements is None and self.known is not None:
            known = self.known.numbers[start : start + indices.numel]
            elements = indices.data = known.reshape(indices.shape)
        if elements is None:
            return
        given = elements.reshape(-1)
        wrong = (given < self.first) | (given >= self.end)
        if self.other is not None:
            wrong &= given != self.other
        if wrong.any():
            error = IndexError(f"index {given[np.argmax(wrong)]} is out of bounds for {self.of}")
            if self.report is None or not self.end:
                raise error
            self.report(error)
            indices.data = np.where(wrong, 0, given).astype(given.dtype).reshape(elements.shape)
