"""A result that will exist at some simulated time, and what continues when it does."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

_T = TypeVar("_T")


class Continuation:
    """A callback with state: an object that continues when a result exists."""

    def resume(self, done: Any) -> None:
        """Continue with a result; None for an event of the calendar."""
        raise NotImplementedError(type(self).__name__)


class AnyCompletion:
    """A result that completes once, with a value or an error.

    Callbacks run at completion, in the order in which they were added. `value` is valid after a
    completion without error; `result` is that value without the check.
    """

    def __init__(self) -> None:
        self.done = False
        self.error: BaseException | None = None
        self.result: Any = None
        # Most completions have one callback: a list for each of them took a third of its time.
        self._callback: Any = None
        self._others: list[Any] | None = None

    @classmethod
    def __class_getitem__(cls, _: object) -> type["AnyCompletion"]:
        return cls

    @property
    def value(self) -> Any:
        """The value of a completion without error; before it, `AttributeError`."""
        if not self.done or self.error is not None:
            raise AttributeError("a completion has a value after it has completed without error")
        return self.result

    @property
    def is_awaited(self) -> bool:
        """Whether something goes on at the completion."""
        return self._callback is not None

    def complete(self, value: Any) -> None:
        """Set the value."""
        self.result = value
        self._finish()

    def fail(self, error: BaseException) -> None:
        """Complete with the error that a wait for this result raises."""
        self.error = error
        self._finish()

    def then(self, callback: Any) -> None:
        """Call `callback(self)`, or resume a continuation, at completion, or now if complete."""
        if self.done:
            _call(callback, self)
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
            _call(callback, self)
        if others is not None:
            for each in others:
                _call(each, self)


def _call(callback: Any, done: AnyCompletion) -> None:
    if isinstance(callback, Continuation):
        continuation = callback
        continuation.resume(done)
    else:
        callback(done)


if TYPE_CHECKING:

    class Completion(AnyCompletion, Generic[_T]):
        """A completion with the type of its value, which only the type checker uses."""

        result: _T

        @property
        def value(self) -> _T:
            """See `AnyCompletion`."""
            ...

        def complete(self, value: _T) -> None:
            """See `AnyCompletion`."""

        def then(self, callback: "Callable[[Completion[_T]], None] | Continuation") -> None:
            """See `AnyCompletion`."""

else:
    Completion = AnyCompletion


def completed(value: _T) -> "Completion[_T]":
    """A result that is complete from the start."""
    done: Any = AnyCompletion()
    done.result, done.done = value, True
    return done


class _AllOf(Continuation):
    """Counts down the completions of a joint one."""

    def __init__(self, completions: Sequence["Completion[Any]"]) -> None:
        self.joint, self.completions = AnyCompletion(), list(completions)
        self.left = len(completions)

    def resume(self, done: Any) -> None:
        self.left -= 1
        if self.joint.done:
            # It has failed already, and completes only once.
            pass
        elif done.error is not None:
            self.joint.fail(done.error)
        elif not self.left:
            self.joint.complete([each.value for each in self.completions])


def all_of(completions: Sequence["Completion[_T]"]) -> "Completion[list[_T]]":
    """A result that completes with all values after the last of `completions`, in their order.

    It fails with the first error.
    """
    parts = _AllOf(completions)
    joint: Any = parts.joint
    if not parts.left:
        joint.complete([])
    for completion in parts.completions:
        completion.then(parts)
    return joint
