"""What `--verify-data` found: figures by kind of memory, and problems in the order in which they should be looked at."""

from msgspec import Struct


class MemoryStatistics(Struct, frozen=True):
    """What was compared in the memories of one kind.

    A buffer is what one operation left and none after it overwrote. `worst_eps` is the largest deviation of an element in
    units of the precision of its type: relative to itself, or to the largest of its buffer where its operands deviate.
    """

    memory: str
    buffers: int
    elements: int
    worst_eps: float


class Verdict(Struct, frozen=True):
    """`passed` says that there are no problems: of each kind, the first one is told and the others are counted."""

    passed: bool
    operations: int
    memories: tuple[MemoryStatistics, ...]
    problems: tuple[str, ...]
