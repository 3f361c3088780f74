"""The identity of a launch: two launches with one key issue the same commands on the same PEs.

The layer of programs states by keys which launches are alike. A chip reports to its `Launches` what
happens to them.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

from runtime.core.requests import KernelLaunchMsg
from sip_node.chip.fabric.packet import FabricTransfer


class NotRepeated(Exception):  # noqa: N818 - no error, but an answer
    """The effects of a launch are not known well enough to repeat it. Fields: the reason."""


class LaunchKey(NamedTuple):
    """The commands of a launch, and the `addresses` of the pointers among the arguments of each PE,
    in the order of its PEs; the bits of its `numbers`, which are those of `packed`.
    """

    kernels: tuple[int, ...]
    """A number for each kernel, with its arguments, on each PE."""
    launch: Hashable
    """All else that the commands depend on."""
    addresses: tuple[tuple[int, ...], ...]
    numbers: tuple[bytes, ...]

    @property
    def commands(self) -> Hashable:
        """Equal for launches of equal commands."""
        return self.kernels, self.launch


class LaunchKeys(Protocol):
    """The launches of an LP, as the layer of programs compares them."""

    def key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """The key of a launch of command `number` on a SIP; None for one that has none."""
        ...

    def exchange_key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """The same for the launch of a collective; it has no numbers, which the kernels may read.
        Its kernels depend on nothing else than their key and the messages that they receive.
        """
        ...

    def is_listed(self, key: LaunchKey, launch: KernelLaunchMsg) -> bool:
        """Whether every kernel of a launch has a list: it depends on nothing else than its key."""
        ...

    def functions(self, sip: int) -> int:
        """The number of kernels on a SIP that have run their functions, and no list. Records of
        functions have numbers without formulas.
        """
        ...

    def repeat(self, pes: int) -> None:
        """A launch on `pes` PEs was repeated: its kernels were not run."""
        ...


class NoLaunchKeys:
    """The keys of a chip that is built without programs."""

    def key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:  # noqa: ARG002
        """None."""
        return None

    def exchange_key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:  # noqa: ARG002
        """None."""
        return None

    def is_listed(self, key: LaunchKey, launch: KernelLaunchMsg) -> bool:  # noqa: ARG002
        """No."""
        return False

    def functions(self, sip: int) -> int:  # noqa: ARG002
        """None that is counted."""
        return 0

    def repeat(self, pes: int) -> None:
        """No launch is repeated."""
        raise AssertionError(f"a launch on {pes} PEs is repeated: this chip runs no programs")


class BeginningLaunch(Protocol):
    """A launch that begins now; a call lets it begin again."""

    @property
    def tag(self) -> int:
        """The tag of its request."""
        ...

    @property
    def launch(self) -> KernelLaunchMsg:
        """The launch."""
        ...

    @property
    def number(self) -> int:
        """The number of its command."""
        ...

    def __call__(self) -> None:
        """Begin: the event."""
        ...

    def finish(self, done: Any) -> None:
        """Finish: it is complete."""
        ...


class Launches(Protocol):
    """The launches of a chip, of which some are repeated (`LaunchTemplates`)."""

    def begin(self, begin: BeginningLaunch) -> bool:
        """A launch begins: whether it is not to be simulated."""
        ...

    def answered(self, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host, which has not recorded it yet."""
        ...

    def leave_out(self) -> None:
        """A kernel of the latest launch sends or receives: it is not to be repeated."""
        ...

    def end(self, tag: int, done: Any) -> bool:
        """The request with a tag is complete: whether it is to be finished later."""
        ...


class Exchanging(Protocol):
    """The launches of all chips of an LP, of which some are repeated together (`Exchanges`)."""

    def begin(self, sip: int, begin: BeginningLaunch) -> bool:
        """A launch begins on a SIP: whether it is not to be simulated."""
        ...

    def answered(self, sip: int, transfer: FabricTransfer) -> None:
        """An answer has arrived at the host of a SIP, which has not recorded it yet."""
        ...

    def end(self, sip: int, tag: int, done: Any) -> bool:
        """The request of the host of a SIP with a tag is complete: whether that is held, and comes
        again.
        """
        ...


class NoExchanges:
    """The exchanges of a process that shares the SIPs with others."""

    def begin(self, sip: int, begin: BeginningLaunch) -> bool:  # noqa: ARG002
        """No."""
        return False

    def answered(self, sip: int, transfer: FabricTransfer) -> None:
        """Nothing is recorded."""

    def end(self, sip: int, tag: int, done: Any) -> bool:  # noqa: ARG002
        """No."""
        return False
