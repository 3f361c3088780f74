"""SHA-256 as hex, of bytes and of files.

By OpenSSL, which every process of a run loads anyway: the interpreter's own function takes 5 ns a
byte where OpenSSL takes 0.7, and an LP hashes the two megabytes of sources that it imports.
"""

from hashlib import file_digest, sha256
from pathlib import Path


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of `data`, as hex."""
    return sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file, as hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
