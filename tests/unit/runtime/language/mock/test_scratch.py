"""Addresses in the scratch of a mock PE."""

import pytest

from runtime.core.dtypes import float32, int8
from runtime.core.errors import KernelError
from runtime.language.mock.pe import MockPe
from runtime.language.mock.scratch import MockScratch


def scratch(total_bytes: int = 16) -> MockScratch:
    return MockScratch(total_bytes, MockPe().queues.error)


def test_values_follow_each_other_aligned_to_their_elements():
    pool = scratch()
    assert [pool.reserve((3,), int8), pool.reserve((1,), float32)] == [0, 4]


def test_a_scope_frees_what_was_reserved_inside():
    pool = scratch()
    pool.reserve((8,), int8)
    with pool.scope():
        assert pool.reserve((8,), int8) == 8
    assert pool.reserve((8,), int8) == 8
    pool.clear()
    assert pool.reserve((1,), int8) == 0


def test_a_value_beyond_the_end_is_an_error_with_the_bytes():
    pool = scratch()
    pool.reserve((15,), int8)
    with pytest.raises(KernelError, match="15 of 16 bytes are in use and 2 more are needed"):
        pool.reserve((2,), int8)
