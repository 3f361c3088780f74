"""Programs that run from a command list: what they do is what their function does."""

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from runtime.wire.environment import FOLD
from tests.triton.all_kernels import ALL
from tests.triton.cases import Launches, Outcome, Program, run

CASES = {each.name: each for each in ALL}


def thrice(program: Program) -> Program:
    """A case whose launches come three times: at first as functions, then from lists."""

    def again(launches: Launches) -> Any:
        for _ in range(2):
            launches.draw = np.random.default_rng(0)
            program(launches)
        launches.draw = np.random.default_rng(0)
        return program(launches)

    return again


def listed_share(program: Program, monkeypatch: pytest.MonkeyPatch) -> float:
    """The share of kernels that run without a function, in a run that leaves what functions do."""
    outcomes = list[Outcome]()
    for fold in ("1", "0"):
        monkeypatch.setenv(FOLD, fold)
        outcomes.append(run(thrice(program), record=True))
    listed, expected = (each.simulation for each in outcomes)
    assert max(each.error for each in outcomes) <= 1
    assert (listed.digest, listed.rows, listed.texts) == (
        expected.digest,
        expected.rows,
        expected.texts,
    )
    done = listed.done
    return (done.listed_kernels + done.repeated_kernels) / done.kernels


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("vector add", "layer norm forward", "matmul, ragged", "flash attention forward, causal"),
        *("persistent matmul, descriptors", "cross entropy, gradient in place", "embedding"),
        *("MoE grouped GEMM", "sort", "scatter of single elements", "SwiGLU backward, in place"),
    ],
)
def test_a_kernel_has_the_records_of_its_function(name: str, monkeypatch: pytest.MonkeyPatch):
    assert listed_share(CASES[name].program, monkeypatch) > 0


def without_function(
    kernel: Any, grid: int, *arrays: np.ndarray, launches: int = 1, **options: Any
) -> tuple[int, int]:
    """The kernels that ran from a list, and all."""

    def program(launched: Launches):
        tensors = [launched.put(each) for each in arrays]
        for _ in range(launches):
            launched(kernel, (grid,), *tensors, **options)
        return [(tensors[0], arrays[0], 0)]

    done = run(program).simulation.done
    return done.listed_kernels + done.repeated_kernels, done.kernels


@triton.jit
def copy_kernel(Y, X, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + offs, tl.load(X + offs, mask=offs < n), mask=offs < n)


def test_programs_whose_masks_are_full_share_a_list():
    x = np.arange(1024, dtype=np.float32)
    # Tensors on one PE: its second program comes again, and has the list of the first.
    assert without_function(copy_kernel, 4, x, x.copy(), n=1024, BLOCK=256) == (1, 1)


FACTOR = tl.constexpr(2)


@triton.jit
def scaled_kernel(Y, X):
    offs = tl.program_id(0) * 8 + tl.arange(0, 8)
    tl.store(Y + offs, tl.load(X + offs) * FACTOR)


def test_a_global_constant_with_another_value_is_another_kernel(monkeypatch: pytest.MonkeyPatch):
    x = np.arange(32, dtype=np.float32)

    def program(launches: Launches):
        given, results = launches.put(x), list[Any]()
        for factor in (2, 2, 2, 3):
            monkeypatch.setitem(scaled_kernel.fn.__globals__, "FACTOR", tl.constexpr(factor))
            out = launches.empty(32)
            launches(scaled_kernel, (4,), out, given)
            results.append((out, x * factor, 0))
            _ = out.numpy()
        return results

    assert run(program).error == 0


@triton.jit
def reading_kernel(Y, X):
    i = tl.load(X).to(tl.int32)
    tl.store(Y + i, 1.0)


def test_a_kernel_that_reads_elements_runs_its_function():
    y, x = np.zeros(8, np.float32), np.full(1, 3, np.float32)
    expected = np.eye(8, dtype=np.float32)[3]

    def program(launches: Launches):
        out, index = launches.put(y), launches.put(x)
        for _ in range(3):
            launches(reading_kernel, (1,), out, index)
        return [(out, expected, 0)]

    done = run(program).simulation.done
    assert done.listed_kernels + done.repeated_kernels == 0


@triton.jit
def shifted_kernel(Y, X, behind, N: tl.constexpr):
    offs = tl.arange(0, N)
    for i in range(3):
        tl.store(Y + behind + offs, tl.load(X + offs + i) * 2.0)


@pytest.mark.parametrize("distance", [0, 1, 16])
def test_tensors_that_share_memory_keep_their_order(distance: int, monkeypatch: pytest.MonkeyPatch):
    """The same kernel first with tensors apart, whose loads start before its stores."""

    def program(launches: Launches):
        x = launches.normal(64)
        whole, apart = launches.put(x), launches.put(x)
        given = {"behind": distance, "N": 16, "num_stages": 3}
        for _ in range(3):
            launches(shifted_kernel, (1,), launches.empty(64), apart, **given)
        launches(shifted_kernel, (1,), whole, whole, **given)
        expected = x.copy()
        for i in range(3):
            expected[distance : distance + 16] = expected[i : i + 16] * np.float32(2)
        return [(whole, expected, 0)]

    assert listed_share(program, monkeypatch) > 0.5
