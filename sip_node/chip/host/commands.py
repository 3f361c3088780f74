"""The commands between the CPUs of a SIP, and their answers.

    host --KernelLaunchMsg--> IO_CPU --CubeCommand--> M_CPU --PeCommand--> PE_CPU
    host --------------------CubeCommand------------> M_CPU
         <---------- CommandDone, in the opposite direction ---------------

A CPU that forwards a command collects the answers of all parts before it answers.
"""

from dataclasses import dataclass

from runtime.core.requests import Extent, PeDmaMsg, QueuePair
from sip_node.chip.kernel import PeLaunch


@dataclass(frozen=True)
class PeMap:
    """Extend the page table."""

    extents: tuple[Extent, ...]


@dataclass(frozen=True)
class PeInstall:
    """Install a queue table."""

    table: str
    queues: tuple[QueuePair, ...]


PeOrder = PeLaunch | PeDmaMsg | PeMap | PeInstall


@dataclass(frozen=True)
class CubeCommand:
    """To an M_CPU: send each PE its order, as `(pe, order, bytes)`; answer when all are done."""

    orders: tuple[tuple[int, PeOrder, int], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all orders."""
        return sum(nbytes for _, _, nbytes in self.orders)


@dataclass(frozen=True)
class PeCommand:
    """To a PE, from its M_CPU."""

    order: PeOrder


@dataclass(frozen=True)
class CommandDone:
    """The answer to a command.

    With kernels: when the earliest of them started and the latest ended; else 0, 0.
    """

    start_ps: int = 0
    end_ps: int = 0


class Gathering:
    """The answers that a CPU collects before it answers itself; it expects `expected` of them."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self._answers: list[CommandDone] = []

    def add(self, answer: CommandDone) -> CommandDone | None:
        """Add an answer; with the last one, returns the answer for all of them."""
        self._answers.append(answer)
        self._left -= 1
        if self._left:
            return None
        return CommandDone(
            min(each.start_ps for each in self._answers), max(each.end_ps for each in self._answers)
        )
