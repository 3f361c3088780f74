"""The commands between the CPUs of a SIP, and their answers.

    host --HostRequest--> IO_CPU --CubeCommand--> M_CPU --PeCommand--> PE_CPU
         <--RequestDone--        <---------- CommandDone ------------

The IO_CPU is the command processor: it holds the requests of a command until the commands are
complete for which that waits. A CPU that forwards a command to several others collects their
answers before it answers itself.
"""

from dataclasses import dataclass

from runtime.core.requests import KernelLaunchMsg, PeDmaMsg, QueuePair
from sip_node.chip.extent_run import ExtentRun
from sip_node.chip.kernel import PeLaunch


@dataclass(frozen=True)
class PeMap:
    """Extend the page table."""

    run: ExtentRun


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


@dataclass(frozen=True)
class CommandHeader:
    """What the IO_CPU needs of a command: its number, the numbers of the earlier commands
    that it waits for, and how many requests it has.

    It is part of the first packet of each request; its bytes are not modelled.
    """

    number: int
    waits_for: tuple[int, ...]
    requests: int


@dataclass(frozen=True)
class HostRequest:
    """To the IO_CPU, with every packet of a request: the command, and what to do on its release.

    A launch is carried out by the IO_CPU. Other packets continue to the node `target`, (sip, node),
    with `order` as their body. None as target: the request is a point in its stream, an event.
    """

    command: CommandHeader
    target: tuple[int, int] | None = None
    order: KernelLaunchMsg | CubeCommand | None = None


@dataclass(frozen=True)
class RequestDone:
    """From the IO_CPU, with the last packet of the answer to a request.

    The IO_CPU held the first packet of the command for `held_ps`, until `released_ps`, and had seen
    the end of the request at `end_ps`.
    """

    done: CommandDone
    released_ps: int
    held_ps: int
    end_ps: int


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
