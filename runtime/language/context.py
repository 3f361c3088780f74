"""The PE that runs the current kernel. The chip model provides one implementation, the mock runtime another."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from runtime.core.dtypes import DType
from runtime.model.tiles import TileSize

if TYPE_CHECKING:
    # Values compute on the PE that runs the kernel, so they import this module.
    from runtime.language.gemm import Gemm
    from runtime.language.value import Pointer, Shape, Value


class PendingResult(Protocol):
    """An operation on its way."""

    def wait(self) -> "Value | None":
        """Block until it is complete; the value that it leaves in TCM, or None where the result went elsewhere."""
        ...


class KernelContext(Protocol):
    """What `tl` needs of a PE. A method blocks in simulated time until its effect is complete, but for those that say so."""

    @property
    def gemm_tile(self) -> TileSize:
        """The largest tile of the GEMM engine."""
        ...

    def program_id(self, axis: int) -> int:
        """PE in its cube (axis 0) or cube in its SIP (axis 1)."""
        ...

    def num_programs(self, axis: int) -> int:
        """PEs a cube (axis 0) or cubes a SIP (axis 1) that run this launch."""
        ...

    def load(self, pointer: "Pointer", shape: "Shape", strides: "tuple[int, ...]") -> "Value":
        """Copy a block from memory to TCM. `strides` count elements of the memory, the last one is 1."""
        ...

    def store(self, pointer: "Pointer", value: "Value", strides: "tuple[int, ...]") -> None:
        """Copy a value from TCM to a block of memory; returns when the memory has acknowledged it."""
        ...

    def math(
        self,
        name: str,
        operands: "Sequence[Value | float]",
        *,
        axis: int | None = None,
        keep_dims: bool = False,
        dtype: DType | None = None,
        shape: "Shape | None" = None,
    ) -> "Value":
        """Run one operation on the math engine: elementwise, a reduction over `axis` (None: over all), or one that moves.

        `dtype` is the type of a cast; `shape` and `dtype` are those of a value made from a number.
        """
        ...

    def gemm(self, gemm: "Gemm") -> PendingResult:
        """Hand a matrix product to the PE's scheduler. Returns once it is queued; several may be in flight."""
        ...

    def send(self, direction: str, value: "Value") -> None:
        """Write a value into the peer's receive ring; blocks while the ring is full."""
        ...

    def recv(
        self,
        direction: str | None,
        shape: "Shape",
        dtype: DType,
        target: "Value | Pointer | None" = None,
    ) -> "PendingResult":
        """Take the next value out of the receive ring of a direction, or of any in turn. Does not block.

        It goes to scratch, over a value in TCM, or to memory.
        """
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
        raise RuntimeError(
            "tl works inside a kernel only: start one with torch.launch(name, kernel, ...)"
        ) from None
