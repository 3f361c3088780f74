"""The scratch of a PE of the mock runtime: addresses of values, with the limit of the chip."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import prod

from runtime.core.dtypes import DType
from runtime.core.errors import KernelError
from runtime.language.value import Shape


class MockScratch:
    """A stack of `total_bytes`; `error` makes the error of the kernel that exceeds it."""

    def __init__(self, total_bytes: int, error: Callable[[str], KernelError]) -> None:
        self._total_bytes, self._error = total_bytes, error
        self._used_bytes = 0

    def clear(self) -> None:
        """Free all."""
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        """The bytes that are reserved: the address behind them."""
        return self._used_bytes

    @property
    def free_bytes(self) -> int:
        """The bytes that are not reserved."""
        return self._total_bytes - self._used_bytes

    @contextmanager
    def scope(self) -> Generator[None]:
        """Free at the end what was reserved inside."""
        used_bytes = self._used_bytes
        yield
        self._used_bytes = used_bytes

    def reserve(self, shape: Shape, dtype: DType) -> int:
        """The address of a value; `KernelError` if the scratch is full."""
        nbytes, total = prod(shape) * dtype.itemsize, self._total_bytes
        # The chip aligns values to their element size, and its addresses are in the same order.
        start = -(-self._used_bytes // dtype.itemsize) * dtype.itemsize
        if start + nbytes > total:
            raise self._error(
                f"kernel scratch is full: {self._used_bytes:,} of {total:,} bytes are in use and "
                f"{nbytes:,} more are needed; free values with `with tl.scratch():`"
            )
        self._used_bytes = start + nbytes
        return start
