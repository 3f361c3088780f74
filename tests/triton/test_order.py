"""The result and the time of a Triton kernel follow from the program alone."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.triton.all_kernels import ALL
from tests.triton.cases import PES, Launches, run
from tests.triton.kernels_products import panels
from tests.triton.kernels_tutorials import product

CASES = {each.name: each for each in ALL}
_DIGEST = """
from tests.triton.all_kernels import ALL
from tests.triton.cases import run
(case,) = [each for each in ALL if each.name == "layer norm forward"]
print(run(case.program).simulation.digest)
"""


def digest(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST],
        env=os.environ | {"TRITON_INTERPRET": "1"} | environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_hash_seeds_and_cores_change_no_digest():
    assert digest(PYTHONHASHSEED="1") == digest(PYTHONHASHSEED="2", KERNBENCH_CORE="python")


def test_a_run_is_repeated_to_the_digest():
    first, second = (run(CASES["fused softmax"].program) for _ in range(2))
    assert first.simulation.digest == second.simulation.digest
    assert first.time_ns == second.time_ns


def test_a_deeper_pipeline_gives_the_same_product_sooner():
    outcomes = {
        stages: run(lambda launches, stages=stages: product(launches, 64, 64, 256, stages=stages))
        for stages in (1, 2, 3)
    }
    assert all(each.error <= 1 for each in outcomes.values())
    assert outcomes[1].time_ns > 1.5 * outcomes[2].time_ns
    assert outcomes[2].time_ns >= outcomes[3].time_ns


def test_an_aligned_block_is_one_descriptor():
    def program(launches: Launches):
        return panels(launches, 64, stages=1, down=1, across=1)

    # Two parts of rows, two panels of columns, and a store of each of their products.
    assert run(program, topology=PES).counts == (2 + 2 + 2 * 2, 0, 0)


def test_loads_of_a_value_that_is_stored_before_see_the_store():
    import triton
    import triton.language as tl

    @triton.jit
    def twice(X, N: tl.constexpr):
        offs = tl.arange(0, N)
        for _ in range(3):
            tl.store(X + offs, tl.load(X + offs) * 2.0)

    def program(launches: Launches):
        x = launches.normal(64)
        tensor = launches.put(x)
        launches(twice, (1,), tensor, N=64, num_stages=3)
        return [(tensor, x * np.float32(8), 0)]

    assert run(program).error == 0
