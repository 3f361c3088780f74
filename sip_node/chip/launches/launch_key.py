"""The identity of a launch: two launches with one key issue the same commands on the same PEs."""

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from runtime.core.requests import KernelLaunchMsg


class NotRepeated(Exception):  # noqa: N818 - no error, but an answer
    """What a launch does is not known well enough to be repeated. Fields: the reason."""


class LaunchKey(NamedTuple):
    """The commands of a launch, and the addresses of the pointers among the arguments of each PE,
    in the order of its PEs.
    """

    commands: tuple[Hashable, ...]
    addresses: tuple[tuple[int, ...], ...]


class LaunchKeys(Protocol):
    """The layer of programs, as it knows launches."""

    def key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """The key of a launch of command `number` on a SIP; None for one that has none."""
        ...

    def is_listed(self, key: LaunchKey, launch: KernelLaunchMsg) -> bool:
        """Whether every kernel of a launch has a list: it depends on nothing else than its key."""
        ...

    def repeat(self, pes: int) -> None:
        """The kernels of a launch on so many PEs were not run, since they are those of a launch
        before.
        """
        ...


class NoLaunchKeys:
    """The keys of a chip that is built without programs."""

    def key(self, sip: int, number: int, launch: KernelLaunchMsg) -> LaunchKey | None:  # noqa: ARG002
        """None."""
        return None

    def is_listed(self, key: LaunchKey, launch: KernelLaunchMsg) -> bool:  # noqa: ARG002
        """No."""
        return False

    def repeat(self, pes: int) -> None:
        """No launch is repeated."""
        raise AssertionError(f"a launch on {pes} PEs is repeated: this chip runs no programs")
