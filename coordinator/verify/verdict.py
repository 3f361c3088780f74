"""The result of `--verify-data`: statistics by kind of memory, and problems by importance."""

from msgspec import Struct


class MemoryStatistics(Struct, frozen=True):
    """The comparison of all memories of one kind.

    A buffer is the part of an operation's result that no later operation overwrote. `worst_eps` is
    the largest deviation of an element in units of the precision of its type, relative to the
    element, or to the largest element of its buffer if the operands deviate as well.
    """

    memory: str
    buffers: int
    elements: int
    worst_eps: float


class Verdict(Struct, frozen=True):
    """`passed` means no problems; the first problem of each kind is described, all are counted."""

    passed: bool
    operations: int
    memories: tuple[MemoryStatistics, ...]
    problems: tuple[str, ...]
