"""Points in one process; tests/multiproc/test_milestone_gemm.py has those of worker processes."""

import gc
from weakref import ReferenceType, ref

from kernbench.studies.pool import completed


class _Machine:
    """Refers to itself, as the parts of a simulated machine do to each other."""

    def __init__(self, _point: int) -> None:
        self.part = self


def test_what_a_point_leaves_in_memory_is_gone_before_the_next_one():
    gc.disable()
    try:
        left = [machine() for _, machine in completed(_measure, [1, 2], procs=1, timeout_s=0)]
    finally:
        gc.enable()
    assert left == [None, None]


def _measure(point: int) -> "ReferenceType[_Machine]":
    return ref(_Machine(point))
