"""The ring, with a mistake in each of two kernels."""

from runtime.ccl.algorithms import ring
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer

broadcast = ring.broadcast


def arguments(group: Group, itemsize: int) -> tuple[ring.Line, int]:
    return ring.arguments(group, itemsize)


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, line: ring.Line, message: int) -> None:
    """The first element of every shard is one too large."""
    ring.all_reduce(shard, numel, op, line, message)
    tl.store(shard, tl.load(shard, 1) + 1)


def reduce(shard: Pointer, numel: int, op: ReduceOp, root: int, line: ring.Line, message: int) -> None:
    """Every rank gets the result, and not the root alone."""
    ring.all_reduce(shard, numel, op, line, message)
