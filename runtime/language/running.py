"""The running kernel as values see it: its innermost scope, and the vector engine of its PE.

Values and their operators need no more of a kernel; all operations of a PE are in
`runtime.language.context`, which is above values.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from runtime.core.dtypes import DType
from runtime.core.garbage_collection import refuse_in_collection


class MathOptions(NamedTuple):
    """Axis (None: all) and `keep_dims` of a reduction, type of a cast, shape and type of `full`."""

    axis: int | None = None
    keep_dims: bool = False
    dtype: DType | None = None
    shape: tuple[int, ...] | None = None


NO_OPTIONS = MathOptions()


class ValueEngine(Protocol):
    """The operations that a PE carries out for operators and conversions of values."""

    def math(self, name: str, operands: Sequence[Any], options: MathOptions = NO_OPTIONS) -> Any:
        """Run one operation on the vector engine."""
        ...


class Scope(Struct, frozen=True, eq=False):
    """A kernel, or a block `with tl.scratch():` of it; values made inside exist until its end."""

    outer: "Scope | None" = None

    def has(self, inner: "Scope | None") -> bool:
        """Whether this scope is `inner`, or one around it."""
        while inner is not None and inner is not self:
            inner = inner.outer
        return inner is self


current_pe: ContextVar[ValueEngine] = ContextVar("current_pe")
"""The context of the running kernel, a `KernelContext`."""
current_scope: ContextVar[Scope | None] = ContextVar("current_scope", default=None)
"""The innermost scope of the running kernel; None outside a kernel."""


@contextmanager
def inner_scope() -> Generator[None]:
    """A scope inside the current one."""
    before = current_scope.set(Scope(current_scope.get()))
    try:
        yield
    finally:
        current_scope.reset(before)


def running_engine() -> ValueEngine:
    """The PE of the kernel that is running; `RuntimeError` outside a kernel, and in a finaliser
    that the garbage collector runs.
    """
    refuse_in_collection()
    try:
        return current_pe.get()
    except LookupError:
        raise RuntimeError(
            "tl works inside a kernel only: start one with torch.launch(name, kernel, ...)"
        ) from None
