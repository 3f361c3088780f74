"""The commands between the CPUs of a SIP, and their answers.

    host --HostRequest--> IO_CPU --CubeCommand--> M_CPU --PeOrder--> PE_CPU
         <--RequestDone--        <--------- CommandDone -----------

The IO_CPU is the command processor: it holds the requests of a command until the commands are
complete for which that waits. A CPU that forwards a command to several others collects their
answers before it answers itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from runtime.core.requests import Extent, KernelLaunchMsg, PeDmaMsg, QueuePair
from sip_node.chip.kernel import PeLaunch


class ExtentRun:
    """The extents that a mapping adds to page tables, in rising order from `begin` to `end`.

    They do not overlap. PEs that map the same parts of a tensor share one run, with its index by
    address: a tensor on 128 PEs has 128 extents, which each of these PEs maps.
    """

    __slots__ = ("_starts", "begin", "end", "extents")

    def __init__(self, extents: Sequence[Extent]) -> None:
        assert all(one.end <= next_one.virtual for one, next_one in pairwise(extents)), (
            "the extents of a mapping rise and do not overlap"
        )
        self.extents = extents
        self._starts = [extent.virtual for extent in extents]
        # An empty tensor has no extents.
        self.begin, self.end = (extents[0].virtual, extents[-1].end) if extents else (0, 0)

    def below(self, address: int) -> Extent | None:
        """The last extent that begins at or below `address`."""
        index = bisect_right(self._starts, address) - 1
        return None if index < 0 else self.extents[index]

    def at(self, address: int) -> Extent | None:
        """The extent that contains `address`."""
        extent = self.below(address)
        return extent if extent is not None and address < extent.end else None

    def replacing(self, older: Iterable["ExtentRun"]) -> "ExtentRun":
        """The union of this run and the extents of older runs that it does not overlap."""
        kept = [each for run in older for each in run.extents if not self._overlaps(each)]
        if not kept:
            return self
        return ExtentRun(sorted((*kept, *self.extents), key=lambda each: each.virtual))

    def _overlaps(self, extent: Extent) -> bool:
        index = bisect_left(self._starts, extent.end) - 1
        return index >= 0 and self.extents[index].end > extent.virtual


class PeMap(Struct, frozen=True):
    """Extend the page table."""

    run: ExtentRun


class PeInstall(Struct, frozen=True):
    """Install a queue table."""

    table: str
    queues: tuple[QueuePair, ...]


PeOrder = PeLaunch | PeDmaMsg | PeMap | PeInstall
"""An order to a PE, from its M_CPU."""


class CubeCommand(Struct, frozen=True):
    """Orders for PEs, each `(pe, order, bytes)`; the M_CPU answers when all of them are done."""

    orders: tuple[tuple[int, PeOrder, int], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all orders."""
        return sum(nbytes for _, _, nbytes in self.orders)


class CommandDone(Struct, frozen=True):
    """The answer to a command.

    With kernels: when the earliest of them started and the latest ended; else 0, 0.
    """

    start_ps: int = 0
    end_ps: int = 0


class CommandHeader(Struct, frozen=True):
    """The part of a command that the IO_CPU reads: its number, the numbers of the earlier commands
    that it waits for, and the number of its requests.

    It is part of the first packet of each request; its bytes are not modelled.
    """

    number: int
    waits_for: tuple[int, ...]
    requests: int


class HostRequest(Struct, frozen=True):
    """A request to the IO_CPU, in each of its packets: the command, and the action on release.

    A launch is carried out by the IO_CPU. Other packets continue to the node `target`, (sip, node),
    with `order` as their body. None as target: the request is a point in its stream, an event.
    """

    command: CommandHeader
    target: tuple[int, int] | None = None
    order: KernelLaunchMsg | CubeCommand | None = None


class RequestDone(Struct, frozen=True):
    """The answer of the IO_CPU to a request, in the last packet.

    The IO_CPU held the first packet of the command for `held_ps`, until `released_ps`, for the end
    of command `after`, and had seen the end of the request at `end_ps`.
    """

    done: CommandDone
    released_ps: int
    held_ps: int
    end_ps: int
    after: int


class Gathering:
    """The answers that a CPU collects before it answers itself; it expects `expected` of them, of
    which `left` are still to come.
    """

    def __init__(self, expected: int) -> None:
        self.left = expected
        self._together: CommandDone | None = None

    def add(self, answer: CommandDone) -> CommandDone | None:
        """Add an answer; with the last one, returns the answer for all of them."""
        before = self._together
        if before is not None and before != answer:
            start_ps = min(before.start_ps, answer.start_ps)
            answer = CommandDone(start_ps, max(before.end_ps, answer.end_ps))
        self._together = answer
        self.left -= 1
        return None if self.left else answer
