"""The events of the IO_CPU at which launches begin and end.

They are objects, so that what is to come on a chip can be read: see `Exchanges`.
"""

from typing import Protocol

from msgspec import Struct

from runtime.core.requests import KernelLaunchMsg
from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.host.commands import CommandDone


class LaunchProcessor(Protocol):
    """The part of an IO_CPU that launches kernels."""

    @property
    def sip(self) -> int:
        """The SIP of which it is the command processor."""
        ...

    def number_of(self, tag: int) -> int:
        """The number of the command of a request that was released."""
        ...

    def launch(self, begin: "LaunchBegin") -> None:
        """A launch begins."""
        ...

    def finish(self, tag: int, done: CommandDone) -> None:
        """Answer a request that it has carried out."""
        ...

    def gathered(self, transfer: FabricTransfer) -> None:
        """An M_CPU has reported that the kernels of its cube have ended."""
        ...


class LaunchBegin(Struct, frozen=True):
    """The event at which a launch begins, of the request with a tag."""

    io_cpu: LaunchProcessor
    tag: int
    launch: KernelLaunchMsg

    def __call__(self) -> None:
        """The event."""
        self.io_cpu.launch(self)

    @property
    def sip(self) -> int:
        """The SIP of its chip."""
        return self.io_cpu.sip

    @property
    def number(self) -> int:
        """The number of its command."""
        return self.io_cpu.number_of(self.tag)

    def finish(self, done: CommandDone) -> None:
        """Answer it: it is complete now."""
        self.io_cpu.finish(self.tag, done)


class LaunchEnd(Struct, frozen=True):
    """The event at which a launch ends with the answer `done`, where it was held there."""

    launch: LaunchBegin
    done: CommandDone

    def __call__(self) -> None:
        """The event."""
        self.launch.finish(self.done)

    @property
    def sip(self) -> int:
        """The SIP of its chip."""
        return self.launch.sip

    @property
    def tag(self) -> int:
        """The tag of its request."""
        return self.launch.tag


class GatheredAnswer(Struct, frozen=True):
    """The event at which an M_CPU has reported that the kernels of its cube have ended."""

    io_cpu: LaunchProcessor
    transfer: FabricTransfer

    def __call__(self) -> None:
        """The event."""
        self.io_cpu.gathered(self.transfer)

    @property
    def sip(self) -> int:
        """The SIP of its chip."""
        return self.transfer.sip
