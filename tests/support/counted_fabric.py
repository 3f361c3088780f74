"""A fabric between SIPs that counts the steps of those who follow its routes."""

from collections.abc import Iterator
from typing import Any, SupportsIndex

from runtime.model.sip_fabric import SipFabric


class CountedFabric(SipFabric):
    """Counts the next hops that are read, and those of each table which is iterated over."""

    reads = 0

    def next_hops(self, sip: int) -> tuple[int, ...]:
        fabric = self

        class Counted(tuple[int, ...]):
            __slots__ = ()

            def __getitem__(self, target: SupportsIndex | slice) -> Any:
                fabric.reads += 1
                return super().__getitem__(target)

            def __iter__(self) -> Iterator[int]:
                fabric.reads += len(self)
                return super().__iter__()

        return Counted(super().next_hops(sip))
