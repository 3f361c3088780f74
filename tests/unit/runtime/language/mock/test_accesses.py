"""Memory accesses of a mock PE: what is in flight, and blocks that no array holds."""

import numpy as np
import pytest

from runtime.core.errors import KernelError, PageFaultError
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.mock.accesses import MockAccesses
from runtime.language.mock.memory import MockMemory
from runtime.language.mock.pe import MockPe
from runtime.language.mock.scratch import MockScratch
from runtime.language.value import Pointer, Shape, Strides


def accesses(memory: MockMemory) -> MockAccesses:
    error = MockPe().queues.error

    def fault(pointer: Pointer, _shape: Shape, _strides: Strides) -> PageFaultError:
        return PageFaultError("k", MockPe().coordinates, "k.py:1", pointer.address, 4, "none", None)

    return MockAccesses(memory, MockScratch(1 << 10, error), error, fault)


def test_a_load_in_the_background_is_in_flight_until_the_kernel_waits():
    memory = MockMemory()
    at = memory.map(np.arange(4, dtype=np.int32), "x")
    pe = accesses(memory)
    pending = pe.load_async(UsedBlock(at, (4,), (1,)))
    value = pe.load(UsedBlock(at, (4,), (1,)))
    with pytest.raises(KernelError, match=r"tl\.store"):
        pe.store(UsedBlock(at, (4,), (1,)), value)
    assert pending.wait().data is not value.data
    pe.store(UsedBlock(at, (4,), (1,)), value)
    assert not pe.in_flight.problem("tl.store")


def test_a_program_begins_with_nothing_in_flight():
    memory = MockMemory()
    at = memory.map(np.arange(4, dtype=np.int32), "x")
    pe = accesses(memory)
    value = pe.load(UsedBlock(at, (4,), (1,)))
    pe.load_async(UsedBlock(at, (4,), (1,)))
    pe.forget()
    pe.store(UsedBlock(at, (4,), (1,)), value)
    assert not pe.in_flight.problem("tl.store")


def test_a_block_that_no_array_holds_is_a_page_fault():
    memory = MockMemory()
    at = memory.map(np.arange(4, dtype=np.int32), "x")
    with pytest.raises(PageFaultError):
        accesses(memory).load(UsedBlock(at, (5,), (1,)))
