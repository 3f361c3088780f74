"""The records of an op log in C, as Python sees them."""

from collections.abc import Callable

class RecordIndex:
    def __init__(self, track: Callable[[int, int, int, str], int]) -> None: ...
    def read(self, sip: int, chunk: bytes) -> tuple[bytes, bytes, bytes, bytes]: ...
