from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from runtime.core.errors import AllocationError
from runtime.model.allocation import RangeAllocator

NBYTES = 128


class Allocation(RuleBasedStateMachine):
    """An allocator against a list with the owner of each byte."""

    taken = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.memory = RangeAllocator("tcm", NBYTES)
        self.owner = [-1] * NBYTES
        self.live: dict[int, int] = {}

    def own(self, offset: int, nbytes: int) -> int:
        assert 0 <= offset <= NBYTES - nbytes
        assert set(self.owner[offset : offset + nbytes]) == {-1}, "two owners of one byte"
        self.owner[offset : offset + nbytes] = [offset] * nbytes
        self.live[offset] = nbytes
        return offset

    def is_free(self, offset: int, nbytes: int) -> bool:
        return offset + nbytes <= NBYTES and set(self.owner[offset : offset + nbytes]) == {-1}

    @rule(target=taken, nbytes=st.integers(1, NBYTES // 3), align=st.sampled_from([1, 8, 16]))
    def alloc(self, nbytes: int, align: int) -> int:
        fits = [offset for offset in range(0, NBYTES, align) if self.is_free(offset, nbytes)]
        try:
            offset = self.memory.alloc(nbytes, align)
        except AllocationError:
            assert not fits
            return -1
        assert offset == fits[0]
        return self.own(offset, nbytes)

    @rule(target=taken, offset=st.integers(0, NBYTES), nbytes=st.integers(1, NBYTES // 3))
    def reserve(self, offset: int, nbytes: int) -> int:
        free = self.is_free(offset, nbytes)
        try:
            self.memory.reserve(offset, nbytes)
        except AllocationError:
            assert not free
            return -1
        return self.own(offset, nbytes)

    @rule(offset=consumes(taken))
    def free(self, offset: int) -> None:
        if offset >= 0:
            self.memory.free(offset)
            nbytes = self.live.pop(offset)
            self.owner[offset : offset + nbytes] = [-1] * nbytes

    @invariant()
    def what_is_free_is_what_nobody_owns_in_as_few_ranges_as_possible(self) -> None:
        runs, start = [], None
        for offset, owner in enumerate([*self.owner, 0]):
            if owner == -1 and start is None:
                start = offset
            elif owner != -1 and start is not None:
                runs.append((start, offset - start))
                start = None
        assert list(self.memory.free_ranges) == runs

    def teardown(self) -> None:
        for offset in self.live:
            self.memory.free(offset)
        assert self.memory.free_ranges == ((0, NBYTES),)


TestAllocation = Allocation.TestCase
TestAllocation.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
