"""A result that will exist at some simulated time."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

_T = TypeVar("_T")


class Completion(Generic[_T]):
    """Completed once, with a value or an error; callbacks run at once, in the order in which they
    were added.
    """

    __slots__ = ("_callbacks", "_value", "done", "error")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[Completion[_T]], None]] = []
        self.done = False
        self._value: _T | None = None
        self.error: BaseException | None = None

    @property
    def value(self) -> _T:
        """The value, once it is there."""
        return cast("_T", self._value)

    def complete(self, value: _T) -> None:
        """Set the value."""
        self._value = value
        self._finish()

    def fail(self, error: BaseException) -> None:
        """Set the error that waiting for this raises."""
        self.error = error
        self._finish()

    def then(self, callback: "Callable[[Completion[_T]], None]") -> None:
        """Call `callback(self)` on completion, at once if that has been."""
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def _finish(self) -> None:
        assert not self.done, "a completion completes once"
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def completed(value: _T) -> Completion[_T]:
    """A result that exists already."""
    done = Completion[_T]()
    done.complete(value)
    return done


def all_of(completions: Sequence[Completion[_T]]) -> Completion[list[_T]]:
    """Complete with the list of values when the last of `completions` does; the first error
    wins.
    """
    together = Completion[list[_T]]()
    left = len(completions)

    def one_done(completion: Completion[_T]) -> None:
        nonlocal left
        left -= 1
        if together.done:
            return
        if completion.error is not None:
            together.fail(completion.error)
        elif left == 0:
            together.complete([each.value for each in completions])

    if not completions:
        together.complete([])
    for completion in completions:
        completion.then(one_done)
    return together
