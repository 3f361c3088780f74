"""The channels of a memory, as a transaction queue uses them."""

from collections.abc import Sequence
from typing import Any, Protocol

from sip_node.chip.memory.access import Access
from sip_node.kernel.containers.int_array import IntArray


class MemoryChannel(Protocol):
    """A channel of a memory, which serves one share at a time."""

    free_ps: int


class MemoryChannels(Protocol):
    """The channels of a memory. A share is what an access needs of one of them; false if nothing.

    Shares are opaque to the queue.
    """

    @property
    def channels(self) -> Sequence[MemoryChannel]:
        """The channels, in the order of the shares."""
        ...

    def shares_of(self, access: Access) -> Sequence[Any]:
        """The share of every channel in an access."""
        ...

    def reserve(
        self,
        shares: Sequence[Any],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int, int]:
        """(begin of the first channel, begin of the last one, end) of shares from `head_ps` on."""
        ...


class Shares:
    """The shares of an access, one of `each` channel, and the indices of the `needed` channels."""

    def __init__(self, each: Sequence[Any]) -> None:
        self.each, self.needed = each, IntArray()
        for index, share in enumerate(each):
            if share:
                self.needed.append(index)


class AccessChannels:
    """Channels without a call of Python where they are compiled.

    `start_ps` and `end_ps` are those of the last access that they serve.
    """

    def __init__(self, channels: Sequence[Any]) -> None:
        self.channels = list(channels)
        self.start_ps = self.end_ps = 0

    def is_replaced(self) -> bool:
        """Whether a method is that of a class of the user."""
        raise NotImplementedError(type(self).__name__)

    def split(self, access: Access) -> Shares:
        """The shares of an access."""
        raise NotImplementedError(type(self).__name__)

    def free_ps(self, index: int) -> int:
        """The time at which a channel is free."""
        raise NotImplementedError(type(self).__name__)

    def serve(
        self,
        shares: Shares,
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
        waited_ps: int,
    ) -> int:
        """Reserve the channels; returns the begin of the first one.

        `waited_ps` is the wait in the queue, which the loads of the channels over time include.
        """
        raise NotImplementedError(type(self).__name__)


class ForeignChannels(AccessChannels):
    """The channels of any other class."""

    def __init__(self, memory: MemoryChannels) -> None:
        super().__init__(memory.channels)
        self._memory = memory

    def split(self, access: Access) -> Shares:
        """The shares by the method of the memory."""
        return Shares(self._memory.shares_of(access))

    def free_ps(self, index: int) -> int:
        """The time at which a channel is free."""
        return self.channels[index].free_ps

    def serve(
        self,
        shares: Shares,
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001
        waited_ps: int,
    ) -> int:
        """Reserve by the method of the memory."""
        if waited_ps:
            for channel, share in zip(self.channels, shares.each, strict=True):
                # A class of the user need not count.
                bins = getattr(channel, "bins", None) if share else None
                if bins is not None:
                    bins.waited_ps = waited_ps
        first_ps, self.start_ps, self.end_ps = self._memory.reserve(
            shares.each, head_ps, tail_ps, writes
        )
        return first_ps


def channels_of(memory: MemoryChannels) -> AccessChannels:
    """The same channels, with methods that are called without Python where they are compiled."""
    if isinstance(memory, AccessChannels) and not memory.is_replaced():
        return memory
    return ForeignChannels(memory)
