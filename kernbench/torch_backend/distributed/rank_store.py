"""The store of a rank, which PyTorch passes to process groups: private to the rank.

A wait for a key of another rank would be in wall time, in which the simulation stands still, and
the other rank would never come to set it. So it is an error at once.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Self

import torch.distributed as dist

from kernbench.torch_backend.runtime.frame_hook import untraced_methods
from kernbench.torch_backend.runtime.pytorch_api import Store


@untraced_methods
class RankStore(Store):
    """Keys and values which this rank has set. `DistStoreError` where PyTorch's stores wait."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self._rank = rank
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        self._values[key] = _bytes(value)

    def get(self, key: str) -> bytes:
        """The value of a key."""
        self.wait([key])
        return self._values[key]

    def add(self, key: str, value: int) -> int:
        """Add to a number, from 0."""
        total = int(self._values.get(key, b"0")) + value
        self._values[key] = str(total).encode()
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Add to the end of a value."""
        self._values[key] = self._values.get(key, b"") + _bytes(value)

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Set a value if the key has another one; without the key, if no value is expected."""
        stored, wanted = self._values.get(key), _bytes(expected_value)
        if stored == wanted or (stored is None and not wanted):
            self._values[key] = _bytes(desired_value)
        return self._values.get(key, wanted)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Nothing if all keys are there, else the error."""
        del timeout
        missing = [key for key in keys if key not in self._values]
        if missing:
            raise dist.DistStoreError(
                f"a store has no key {missing[0]!r} on rank {self._rank}: in a run of kernbench "
                "the store of a process group is private to its rank, so no other rank can set it. "
                "Ranks exchange values by collectives, such as broadcast_object_list"
            )

    def delete_key(self, key: str) -> bool:
        """Delete a key; whether it was there."""
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """The number of keys."""
        return len(self._values)

    # What PyTorch's C++ calls them.
    deleteKey, getNumKeys = delete_key, num_keys  # noqa: N815

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """True: values may be added to, and set together."""
        return True

    def clone(self) -> Self:
        """The same store, as no rank shares it."""
        return self


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
