"""The PE that runs the current kernel. The chip model provides one implementation, tests another."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from runtime.dtypes import DType

if TYPE_CHECKING:
    # Values compute on the PE that runs the kernel, so they import this module.
    from runtime.language.value import Pointer, Shape, Value


class KernelContext(Protocol):
    """What `tl` needs of a PE. Every method blocks in simulated time until its effect is complete."""

    def program_id(self, axis: int) -> int:
        """PE in its cube (axis 0) or cube in its SIP (axis 1)."""
        ...

    def num_programs(self, axis: int) -> int:
        """PEs a cube (axis 0) or cubes a SIP (axis 1) that run this launch."""
        ...

    def load(self, pointer: "Pointer", shape: "Shape") -> "Value":
        """Copy a contiguous block from memory to TCM."""
        ...

    def store(self, pointer: "Pointer", value: "Value") -> None:
        """Copy a value from TCM to a contiguous block of memory; returns when the memory has acknowledged it."""
        ...

    def math(self, name: str, operands: "Sequence[Value | float]") -> "Value":
        """Run one elementwise operation on the math engine."""
        ...

    def cat(self, values: "Sequence[Value]") -> "Value":
        """Copy values of one type behind each other."""
        ...

    def send(self, direction: str, value: "Value") -> None:
        """Write a value into the peer's receive ring; blocks while the ring is full."""
        ...

    def recv(self, direction: str, shape: "Shape", dtype: DType) -> "Value":
        """Take the next value out of the receive ring of a direction; blocks until it has arrived."""
        ...

    def scratch(self) -> AbstractContextManager[None]:
        """A scope: values made inside give their TCM back at its end."""
        ...


current_pe: ContextVar[KernelContext] = ContextVar("current_pe")


def running_kernel() -> KernelContext:
    """The context of the kernel that is running; `RuntimeError` outside a kernel."""
    try:
        return current_pe.get()
    except LookupError:
        raise RuntimeError("tl works inside a kernel only: start one with torch.launch(name, kernel, ...)") from None
