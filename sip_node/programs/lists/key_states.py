"""The states of the keys of kernels: how often each has come, and its lists."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from runtime.core.program_grid import GridPoint
from sip_node.programs.lists.arguments import Key
from sip_node.programs.lists.commands import ListedCommand
from sip_node.programs.lists.guarded_integers import ListGuard, variables


class ListVariant(Struct, frozen=True):
    """The list of the programs that keep guards; its `number` is its own."""

    number: int
    guards: tuple[ListGuard, ...]
    commands: tuple[ListedCommand, ...]


class KeyState(Struct, frozen=True):
    """The state of a key: its commands, if it has a list; or its lists with guards. `exchanges` is
    whether the commands send or receive. `first` is the command of the host that launched a
    collective which has come in one call, else -1. On `axes` are the ids that a kernel reads, which
    has a list for each of them.
    """

    commands: tuple[ListedCommand, ...] | None = None
    variants: tuple[ListVariant, ...] = ()
    first: int = -1
    axes: tuple[int, ...] = ()
    exchanges: bool = False

    def variant(self, ids: GridPoint, addresses: Sequence[int]) -> ListVariant | None:
        """The list for a program, if there is one."""
        values = variables(ids, addresses)
        for each in self.variants:
            if all(guard.holds(values) for guard in each.guards):
                return each
        return None

    @property
    def size(self) -> int:
        """The number of its commands, and one for the key."""
        if self.commands is not None:
            return 1 + len(self.commands)
        return 1 + sum(len(each.commands) for each in self.variants)


SEEN, HAS_NONE = KeyState(), KeyState()
"""A kernel that has come once; one that no list holds."""


def of_ids(key: Key, axes: tuple[int, ...], ids: GridPoint) -> Key:
    """The key of a list that is one for the ids of a program on some axes."""
    return *key, axes, tuple([ids[axis] for axis in axes])


class ChosenVariants(NamedTuple):
    """The `numbers` of the lists of the programs of a kernel with a key; -1 of one without."""

    kernel: Key
    numbers: tuple[int, ...]

    @property
    def is_complete(self) -> bool:
        """Whether each program has a list."""
        return -1 not in self.numbers
