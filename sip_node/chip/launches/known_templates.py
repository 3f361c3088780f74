"""The launches that were recorded, by the state at their begin, and those that may be."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from sip_node.chip.launch_keys import NotRepeated

MOST_KEYS = 1 << 14
"""The keys of launches that are known; those used last are."""
SHARE_OF_REPEATED = 0.75
"""The part of the memory of those that were repeated, which new ones do not displace."""


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


class _Kept(Generic[_Recorded]):
    """What is kept by the state at its begin, in the order of its last use."""

    def __init__(self) -> None:
        self.of: OrderedDict[Hashable, list[_Recorded]] = OrderedDict()
        self.nbytes = 0

    def add(self, state: Hashable, recorded: list[_Recorded]) -> None:
        """Keep what began in a state, as the last used."""
        self.of.setdefault(state, []).extend(recorded)
        self.of.move_to_end(state)
        self.nbytes += sum(each.nbytes for each in recorded)

    def take(self, state: Hashable | None = None) -> tuple[Hashable, list[_Recorded]]:
        """Remove what began in a state, or what was used longest ago."""
        first = next(iter(self.of)) if state is None else state
        recorded = self.of.pop(first)
        self.nbytes -= sum(each.nbytes for each in recorded)
        return first, recorded


class KnownTemplates(Generic[_Recorded]):
    """Recorded launches, of `most_bytes` at most; launches with one key are recorded
    `most_attempts` times, and once more for each that is repeated.

    Dropped is first what was never repeated (a segmented LRU, Karedla, Love and Wherry, Caching
    strategies to improve disk system performance, 1994): a training step that needs more memory
    would else displace its own launches before they come again.
    """

    def __init__(self, most_bytes: int, most_attempts: int) -> None:
        self._most_bytes, self._most_attempts = most_bytes, most_attempts
        self._new, self._repeated = _Kept[_Recorded](), _Kept[_Recorded]()
        # By the commands of launches: how many more of them are recorded.
        self._attempts: OrderedDict[Hashable, int] = OrderedDict()

    def of(self, state: Hashable) -> Sequence[_Recorded]:
        """All that has begun in a state."""
        return self._repeated.of.get(state) or self._new.of.get(state, ())

    def repeated(self, state: Hashable, commands: Hashable) -> None:
        """One with a key was repeated, from a state."""
        if state in self._new.of:
            self._repeated.add(*self._new.take(state))
        else:
            self._repeated.of.move_to_end(state)
        while self._repeated.nbytes > SHARE_OF_REPEATED * self._most_bytes:
            self._new.add(*self._repeated.take())
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
        (self._repeated if state in self._repeated.of else self._new).add(state, [known])
        while self._new.nbytes + self._repeated.nbytes > self._most_bytes:
            (self._new if self._new.of else self._repeated).take()

    def _allow(self, commands: Hashable, more: int) -> None:
        """Allow more with a key to be recorded, or fewer."""
        self._attempts[commands] = self._attempts.pop(commands, 0) + more
        if len(self._attempts) > MOST_KEYS:
            self._attempts.popitem(last=False)
