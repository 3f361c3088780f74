"""Barriers that order accesses of two PEs are needed; all others are not."""

from collections.abc import Callable

import numpy as np
import pytest

from kernbench import DPPolicy, tl, torch
from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.rules.barriers import barrier_findings, needless_barriers
from kernbench.explain.advice.scope import RunSelection, scope_of
from kernbench.explain.why.cursor import RunIndex
from tests.support.simulated_runs import recorded

COUNT = 256


def evidence_of(kernel: Callable[..., None]) -> Evidence:
    """The evidence of a kernel on two PEs with COUNT elements of two tensors each."""

    def program(_rank: int) -> None:
        dp = DPPolicy(pe="row_wise", num_cubes=1, num_pes=2)
        x = torch.from_numpy(np.ones(2 * COUNT, np.float32), dp=dp)
        torch.launch("kernel", kernel, x, torch.empty(2 * COUNT, dtype=torch.float32, dp=dp))

    records = recorded(program, data=False)
    return Evidence(records, scope_of(records, RunSelection()), RunIndex.of(records))


def own_parts(x: tl.Pointer, out: tl.Pointer) -> None:
    """Kernel: each PE uses its own part on both sides of two barriers."""
    part = tl.program_id(0) * COUNT
    tl.store(out + part, tl.load(x + part, COUNT))
    tl.barrier()
    tl.store(x + part, tl.load(out + part, COUNT))
    tl.barrier()
    tl.load(x + part, COUNT)


def part_of_the_other(x: tl.Pointer, out: tl.Pointer) -> None:
    """Kernel: behind the first barrier a PE reads what the other one has stored before it."""
    pe = tl.program_id(0)
    tl.store(out + pe * COUNT, tl.load(x + pe * COUNT, COUNT))
    tl.barrier()
    tl.load(out + (1 - pe) * COUNT, COUNT)
    tl.barrier()
    tl.load(x + pe * COUNT, COUNT)


def over_what_the_other_read(x: tl.Pointer, out: tl.Pointer) -> None:
    """Kernel: behind both barriers a PE writes what the other one has read before them."""
    pe = tl.program_id(0)
    tl.load(x + (1 - pe) * COUNT, COUNT)
    tl.barrier()
    value = tl.load(out + pe * COUNT, COUNT)
    tl.barrier()
    tl.store(x + pe * COUNT, value)


@pytest.mark.parametrize(
    ("kernel", "needless"), [(own_parts, 4), (part_of_the_other, 2), (over_what_the_other_read, 2)]
)
def test_a_barrier_is_needed_if_it_orders_accesses_of_two_pes(
    kernel: Callable[..., None], needless: int
):
    evidence = evidence_of(kernel)
    assert len(needless_barriers(evidence, evidence.launches[0])) == needless


def test_the_finding_names_the_statement_and_the_cost():
    [finding] = barrier_findings(evidence_of(own_parts))
    assert finding.line.startswith("tests/unit/kernbench/explain/advice/rules/test_barriers.py:")
    # The launch without its barriers: that of the PE whose other steps take longest.
    [launch] = evidence_of(own_parts).launches
    own_ps = max(program.own_ps for program in launch.programs)
    assert finding.cost_ps == launch.time_ps - own_ps > 0
