"""What CPUs tell each other inside a SIP: one command for the PEs of a cube, and the answers on the way back."""

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
    """To an M_CPU: give each PE its order, as `(pe, order, bytes)`, and answer when all have done it."""

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
    """The answer to a command: when the earliest kernel below started and the last one ended (0, 0 without kernels)."""

    start_ps: int = 0
    end_ps: int = 0


class Gathering:
    """Answers that a CPU still waits for before it answers itself."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self._answers: list[CommandDone] = []

    def add(self, answer: CommandDone) -> CommandDone | None:
        """Note one answer; with the last one, the answer for all of them."""
        self._answers.append(answer)
        self._left -= 1
        if self._left:
            return None
        return CommandDone(
            min(each.start_ps for each in self._answers), max(each.end_ps for each in self._answers)
        )
