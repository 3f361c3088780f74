"""A mapping of a configuration file as an immutable record whose annotations are its schema.

The process that reads a file checks it (`runtime.core.config.config_file`) and sends the values to
the others as MessagePack. Decoding checks types and ranges once more.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from runtime.core.sha256 import sha256_hex


@dataclass(frozen=True)
class NewestVersion:
    """Stands in the annotation of a key with the version of a file: the newest that is read."""

    version: int


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of a configuration file: its fields are the keys.

    Annotations are sections, mappings, tuples, literals, `int`, `float` and `str`; `msgspec.Meta`
    adds ranges, `NewestVersion` the bound of a version.
    """

    def values(self) -> dict[str, Any]:
        """The keys and values as in a file, those of nested sections included."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values

    def encoded(self) -> bytes:
        """The values as MessagePack."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """The section that `encoded` returned these bytes for; `msgspec.ValidationError` for
        others.
        """
        return msgspec.msgpack.decode(data, type=cls)


def config_hash(*sections: Section) -> str:
    """SHA-256 over the canonical JSON of `sections`, as hex.

    It covers values only: comments, the order of keys, and `1` written for `1.0` do not change it.
    """
    content = [section.values() for section in sections]
    return sha256_hex(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
