"""Times of the operators of tensors: bytes over bandwidths and elements over lanes, in sequence.

A PE loads both operands of a block, adds, and stores the sum. The four commands wait for one
another, so their times add up: T(n) = 2 L(4n) + A(4n) + S(4n) for n float32 elements. L and S are a
load from the own slice and a store to it, A an addition
(`kernbench.oracle.theory.kernels.kernel_costs`).
"""

import numpy as np
import pytest

from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime import DPPolicy, torch
from runtime.core.trace import OpRecord
from tests.support.topologies import default_text
from tests.support.world import simulate

pytestmark = pytest.mark.fidelity

PACKET_BYTES = 4096
COSTS = KernelCosts(TopologyFile.of(default_text()), PACKET_BYTES)
ENGINES = ("pe_dma", "pe_math")


def addition_ps(elements: int) -> int:
    nbytes = 4 * elements
    return 2 * COSTS.load_ps(nbytes) + COSTS.add_ps(nbytes) + COSTS.store_ps(nbytes)


def records_of_a_sum(elements: int, dp: DPPolicy | None) -> list[OpRecord]:
    """The commands of `x + y`, by PE in the order of time."""

    def program(_rank: int) -> None:
        options = {} if dp is None else {"dp": dp}
        x, y = (torch.empty(elements, **options) for _ in range(2))
        x + y

    world = simulate(program, 1, data=False)
    records = [record for engine in ENGINES for _, record in world.of(engine)]
    return sorted(records, key=lambda record: (record.cube, record.pe, record.start_ps))


def test_each_block_of_a_sum_on_one_pe_takes_its_closed_form() -> None:
    # Three operands of 4 bytes in 1 MiB of scratch, less room for their alignment.
    block = ((1 << 20) - 256) // 12
    records = records_of_a_sum(3 * block + 1000, DPPolicy(num_cubes=1, num_pes=1))
    assert [record.name for record in records] == ["load", "load", "add", "store"] * 4
    begins = [record.start_ps for record in records[::4]]
    assert np.diff(begins).tolist() == [addition_ps(block)] * 3


def test_a_sum_on_128_pes_is_that_of_one_pe_with_a_128th_of_the_elements() -> None:
    elements = 1 << 20
    records = records_of_a_sum(elements, None)
    spans = {
        (record.cube, record.pe): records[first + 3].end_ps - record.start_ps
        for first, record in enumerate(records)
        if first % 4 == 0
    }
    assert len(spans) == 128
    # Between the start of the first DMA request and the end of the last one: without the issue and
    # the translation of the first command.
    before_ps = COSTS.commands.translated_ps
    assert set(spans.values()) == {addition_ps(elements // 128) - before_ps}
