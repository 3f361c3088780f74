"""A result that will exist at some simulated time, and callbacks on it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from runtime.core.compiled.choice import IS_COMPILED

_T = TypeVar("_T")


class ReferenceCompletion(Generic[_T]):
    """A result that completes once, with a value or an error.

    Callbacks run at completion, in the order in which they were added. `value` is valid after a
    completion without error.
    """

    # Most completions have one callback: a list for each of them took a third of its time.
    __slots__ = ("_callback", "_others", "done", "error", "value")
    value: _T

    def __init__(self) -> None:
        self.done = False
        self.error: BaseException | None = None
        self._callback: Callable[[ReferenceCompletion[_T]], None] | None = None
        self._others: list[Callable[[ReferenceCompletion[_T]], None]] | None = None

    def complete(self, value: _T) -> None:
        """Set the value."""
        self.value = value
        self._finish()

    def fail(self, error: BaseException) -> None:
        """Complete with the error that a wait for this result raises."""
        self.error = error
        self._finish()

    def then(self, callback: "Callable[[ReferenceCompletion[_T]], None]") -> None:
        """Call `callback(self)` at completion, or now if it is complete."""
        if self.done:
            callback(self)
        elif self._callback is None:
            self._callback = callback
        elif self._others is None:
            self._others = [callback]
        else:
            self._others.append(callback)

    def _finish(self) -> None:
        assert not self.done, "a completion completes once"
        self.done = True
        callback, others = self._callback, self._others
        # A callback may refer to this object: in a cycle, neither would ever be deleted.
        self._callback = self._others = None
        if callback is not None:
            callback(self)
        if others is not None:
            for each in others:
                each(self)


def reference_completed(value: _T) -> ReferenceCompletion[_T]:
    """A result that is complete from the start."""
    done = ReferenceCompletion[_T]()
    done.complete(value)
    return done


def reference_all_of(
    completions: Sequence[ReferenceCompletion[_T]],
) -> ReferenceCompletion[list[_T]]:
    """A result that completes with all values after the last of `completions`, in their order.

    It fails with the first error.
    """
    joint = ReferenceCompletion[list[_T]]()
    left = len(completions)

    def count_down(completion: ReferenceCompletion[_T]) -> None:
        nonlocal left
        left -= 1
        if joint.done:
            # It has failed already, and completes only once.
            return
        if completion.error is not None:
            joint.fail(completion.error)
        elif left == 0:
            joint.complete([each.value for each in completions])

    if not completions:
        joint.complete([])
    for completion in completions:
        completion.then(count_down)
    return joint


if TYPE_CHECKING or not IS_COMPILED:
    Completion = ReferenceCompletion
    completed, all_of = reference_completed, reference_all_of
else:
    from sip_node.compiled import completion as compiled

    Completion = compiled.Completion
    completed, all_of = compiled.completed, compiled.all_of
