"""The launches that were recorded, by the state at their begin, and those that may be."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from sip_node.chip.launch_keys import NotRepeated

MOST_KEYS = 1 << 14
"""The keys of launches that are known; those used last are."""


class Sized(Protocol):
    """Something that was recorded."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        ...


_Recorded = TypeVar("_Recorded", bound=Sized)


_Template_co = TypeVar("_Template_co", covariant=True)
_Template = TypeVar("_Template")


class Learned(Protocol[_Template_co]):
    """Launches that were simulated and recorded."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        ...

    def template(self) -> _Template_co:
        """The template that they are; raises `NotRepeated`."""
        ...


class Recorded(Generic[_Template]):
    """Launches that were recorded: their template once they have come again, None if they cannot be
    repeated.
    """

    def __init__(self, learned: Learned[_Template]) -> None:
        self.nbytes = learned.nbytes
        self._learned: Learned[_Template] | None = learned
        self._template: _Template | None = None

    @property
    def template(self) -> _Template | None:
        """The template that they become."""
        learned, self._learned = self._learned, None
        if learned is not None:
            try:
                self._template = learned.template()
            except NotRepeated:
                self._template = None
        return self._template


class KnownTemplates(Generic[_Recorded]):
    """Recorded launches, of `most_bytes` at most; launches with one key are recorded
    `most_attempts` times, and once more for each that is repeated.
    """

    def __init__(self, most_bytes: int, most_attempts: int) -> None:
        self._most_bytes, self._most_attempts = most_bytes, most_attempts
        self._known: OrderedDict[Hashable, list[_Recorded]] = OrderedDict()
        self._nbytes = 0
        # By the commands of launches: how many more of them are recorded.
        self._attempts: OrderedDict[Hashable, int] = OrderedDict()

    def of(self, state: Hashable) -> Sequence[_Recorded]:
        """All that has begun in a state."""
        return self._known.get(state, ())

    def repeated(self, state: Hashable, commands: Hashable) -> None:
        """One with a key was repeated, from a state."""
        self._known.move_to_end(state)
        self._allow(commands, +1)

    def has_come(self, commands: Hashable) -> bool:
        """Whether one with a key has begun before; from now on it has."""
        if commands in self._attempts:
            return True
        self._allow(commands, self._most_attempts)
        return False

    def attempts(self, commands: Hashable) -> bool:
        """Whether one more with a key, which has come before, is recorded."""
        if not self._attempts[commands]:
            return False
        self._allow(commands, -1)
        return True

    def give_up(self, commands: Hashable) -> None:
        """Record none with a key any more."""
        self._attempts[commands] = 0

    def keep(self, state: Hashable, known: _Recorded) -> None:
        """Keep what began in a state."""
        self._known.setdefault(state, []).append(known)
        self._known.move_to_end(state)
        self._nbytes += known.nbytes
        while self._nbytes > self._most_bytes:
            _, dropped = self._known.popitem(last=False)
            self._nbytes -= sum(each.nbytes for each in dropped)

    def _allow(self, commands: Hashable, more: int) -> None:
        """Allow more with a key to be recorded, or fewer."""
        self._attempts[commands] = self._attempts.pop(commands, 0) + more
        if len(self._attempts) > MOST_KEYS:
            self._attempts.popitem(last=False)
