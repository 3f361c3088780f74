"""The bounds of indices, which kernels check where they use them, as a GPU kernel asserts them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from runtime.language.context import running_kernel
from runtime.language.value import Value


class IndexBounds(NamedTuple):
    """Indices from `first` on and less than `end`, or equal to `other`; `of` names what they are
    indices of.
    """

    end: int
    of: str
    first: int = 0
    other: int | None = None

    @classmethod
    def of_axis(
        cls, shape: Sequence[int], axis: int, *, counts_from_end: bool = False
    ) -> "IndexBounds":
        """Bounds of an axis of a tensor, with negative ones if an index may count from the end."""
        length, number = shape[axis], axis % len(shape)
        of = f"dimension {number} with size {length}"
        return cls(length, of, first=-length if counts_from_end else 0)

    def check(self, indices: Value) -> None:
        """`IndexError` for an index out of bounds. It takes no simulated time."""
        elements = running_kernel().elements_of(indices)
        assert elements is not None, "programs of PyTorch run with data"
        given = elements.reshape(-1)
        wrong = (given < self.first) | (given >= self.end)
        if self.other is not None:
            wrong &= given != self.other
        if wrong.any():
            raise IndexError(f"index {given[np.argmax(wrong)]} is out of bounds for {self.of}")
