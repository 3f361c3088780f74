"""Integers of 64 bits in a growing array: `values[0]` to `values[size - 1]`."""

from bisect import bisect_left


class IntArray:
    """An array, empty at first."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[int] = []

    @property
    def size(self) -> int:
        """The number of its integers."""
        return len(self.values)

    def first_from(self, value: int) -> int:
        """The index of the first integer of a rising array that is not less than `value`."""
        return bisect_left(self.values, value)

    def append(self, value: int) -> None:
        """Put an integer behind the others."""
        self.values.append(value)

    def remove(self, value: int) -> bool:
        """Remove the first integer with this value; returns whether there is one."""
        is_there = value in self.values
        if is_there:
            self.values.remove(value)
        return is_there

    def replace(self, first: int, last: int, value: int) -> None:
        """Put one integer in place of those from index `first` to before `last`."""
        self.values[first:last] = [value]
