"""SHA-256 without OpenSSL, for a process that hashes little.

`hashlib` loads OpenSSL: 3.4 MB of memory and 3 ms. The interpreter has a function of its own, which
costs neither, but 5 ns a byte where OpenSSL takes 0.7 ns. Both are equal at about a megabyte.
"""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Protocol, Self

_LITTLE_BYTES = 1 << 20


class _Hash(Protocol):
    def update(self, data: bytes | bytearray | memoryview, /) -> None: ...
    def copy(self) -> Self: ...
    def hexdigest(self) -> str: ...


def _of_interpreter() -> Callable[[bytes | bytearray], _Hash]:
    # Python 3.12 has renamed the module; an interpreter may be built without it.
    for name in ("_sha2", "_sha256"):
        with suppress(ImportError):
            constructor: Callable[[bytes | bytearray], _Hash] = import_module(name).sha256
            return constructor
    return _of_openssl()


def _of_openssl() -> Callable[[bytes | bytearray], _Hash]:
    from hashlib import sha256 as openssl_sha256

    return openssl_sha256


_sha256 = _of_interpreter()


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of little data, as hex."""
    return _sha256(data).hexdigest()


def sha256_of(data: bytes) -> str:
    """The SHA-256 of data of any size, as hex."""
    running = RunningSha256()
    running.update(data)
    return running.hexdigest()


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file, as hex."""
    running = RunningSha256()
    with path.open("rb") as file:
        while part := file.read(_LITTLE_BYTES):
            running.update(part)
    return running.hexdigest()


class RunningSha256:
    """SHA-256 of data that comes in parts: of a megabyte or more, by OpenSSL."""

    __slots__ = ("_hash", "_held")

    def __init__(self) -> None:
        self._held = bytearray()
        self._hash: _Hash | None = None

    def update(self, data: bytes | bytearray | memoryview) -> None:
        """Append a part."""
        # A state cannot move from one implementation to the other, so little data waits for either.
        if self._hash is None:
            if len(self._held) + memoryview(data).nbytes <= _LITTLE_BYTES:
                self._held.extend(data)
                return
            self._hash, self._held = _of_openssl()(self._held), bytearray()
        self._hash.update(data)

    def copy(self) -> "RunningSha256":
        """A hash of the same parts, to which others can be appended."""
        other = RunningSha256()
        other._held = self._held.copy()
        other._hash = self._hash and self._hash.copy()
        return other

    def hexdigest(self) -> str:
        """The SHA-256 of all parts so far, as hex."""
        return (self._hash or _sha256(self._held)).hexdigest()
