"""The operators without a kernel that are being computed by other operators: formulas of this
package and decompositions of PyTorch, the outermost one first.

An attempt ends without an effect where it would call the operator that it computes, read elements
or run a part of it on the host: then the next stage of `fallback_chain` computes the operator.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Attempt(NamedTuple):
    """An operator, and whether a decomposition computes it, not a formula."""

    operator: str
    is_decomposition: bool


class AttemptEndedError(Exception):
    """The end of an attempt: the operator that is computed, and the reason."""

    def __init__(self, operator: str, reason: str) -> None:
        super().__init__(operator, reason)

    def __str__(self) -> str:
        operator, reason = self.args
        return f"the attempt to compute {operator} on the device ends: {reason}"


class CircularAttemptError(AttemptEndedError):
    """The end of a decomposition that calls the operator which it computes."""


# A rank program is a greenlet with its own context.
_ATTEMPTS: ContextVar[tuple[Attempt, ...]] = ContextVar("attempts", default=())


def is_attempted() -> bool:
    """Whether an operator is being computed by others."""
    return bool(_ATTEMPTS.get())


@contextmanager
def attempting(attempt: Attempt) -> Generator[None]:
    """A `with` block that computes an operator by others; an error if one of the blocks around it
    does so already, `CircularAttemptError` if by a decomposition.
    """
    outer = _ATTEMPTS.get()
    for each in outer:
        if each.operator == attempt.operator:
            kind = CircularAttemptError if each.is_decomposition else AttemptEndedError
            raise kind(outer[-1].operator, f"it calls {attempt.operator} again")
    token = _ATTEMPTS.set((*outer, attempt))
    try:
        yield
    finally:
        _ATTEMPTS.reset(token)


def refuse_host(operator: str) -> None:
    """`AttemptEndedError` for an operator that an attempt would run on the host."""
    attempts = _ATTEMPTS.get()
    if attempts:
        raise AttemptEndedError(attempts[-1].operator, f"{operator} would run on the host")


def refuse_read() -> None:
    """`AttemptEndedError` for a decomposition that reads elements: its operators depend on them."""
    attempts = _ATTEMPTS.get()
    if any(each.is_decomposition for each in attempts):
        raise AttemptEndedError(attempts[-1].operator, "it reads elements")
