"""Atomic operations of Triton kernels: values, order, and what reads of data decide."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

from coordinator.verify.check import verify
from kernbench import DPPolicy, torch
from kernbench.simulation import simulate
from runtime.core.errors import KernelError
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from runtime.wire.environment import FOLD
from tests.support.checked import checked
from tests.triton.all_kernels import ALL
from tests.triton.cases import PES, Launches, run

CASES = {each.name: each for each in ALL}
ATOMICS = ("layer norm backward, locks", "rows from a work counter", "split-k matmul, atomic")
ROOT = Path(__file__).parents[2]


@triton.jit
def add_kernel(X, Old, V, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    old = tl.atomic_add(X + 2 * offs, tl.load(V + offs, mask=mask), mask=mask, scope="sys")
    tl.store(Old + offs, old, mask=mask)


@pytest.mark.parametrize(
    "dtype",
    [*map(np.dtype, ("int32", "int64", "float16", "float32")), np.dtype(ml_dtypes.bfloat16)],
    ids=str,
)
def test_a_masked_block_is_added_and_the_old_elements_come_back(dtype: np.dtype):
    def program(launches: Launches):
        x = (launches.normal(64) * 100).astype(dtype)
        v = (launches.normal(32) * 100).astype(dtype)
        tensor, old = launches.put(x), launches.put(np.zeros(32, dtype))
        launches(add_kernel, (1,), tensor, old, launches.put(v), 20, BLOCK=32)
        new, before = x.copy(), np.zeros(32, dtype)
        new[:40:2] += v[:20]
        before[:20] = x[:40:2]
        return [(tensor, new, 0), (old, before, 0)]

    outcome = run(program)
    assert outcome.error == 0
    # One descriptor for each of the load, the operation and the store.
    assert outcome.counts == (3, 0, 0)


@triton.jit
def unsigned_kernel(X, Old, V, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    pointers = X.to(tl.pointer_type(tl.uint32), bitcast=True) + offs
    value = tl.load(V + offs).to(tl.uint32, bitcast=True)
    old = tl.atomic_max(pointers, value)
    tl.store(Old + offs, tl.atomic_add(pointers, 1).to(tl.int64))
    tl.atomic_min(pointers, old + 5)


def test_integers_without_a_sign_have_the_order_of_their_bits():
    def program(launches: Launches):
        x, v = (launches.draw.integers(-(1 << 31), 1 << 31, 16, np.int64) for _ in "xv")
        x, v = x.astype(np.int32), v.astype(np.int32)
        tensor, old = launches.put(x), launches.put(np.zeros(16, np.int64))
        launches(unsigned_kernel, (1,), tensor, old, launches.put(v), BLOCK=16)
        most = np.maximum(x.view("u4"), v.view("u4"))
        new = np.minimum(most + np.uint32(1), x.view("u4") + np.uint32(5))
        return [(old, most.astype(np.int64), 0), (tensor, new.view("i4"), 0)]

    assert run(program).error == 0


@triton.jit
def repeated_kernel(X, Old, I, V, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    index = tl.load(I + offs)
    old = tl.atomic_xchg(X + index, tl.load(V + offs))
    tl.store(Old + offs, old)
    tl.atomic_add(X + index * 0, 1)


def test_elements_at_one_address_are_combined_in_their_order():
    def program(launches: Launches):
        x, v = np.arange(8, dtype=np.int32), np.arange(100, 132, dtype=np.int32)
        index = launches.draw.integers(0, 8, 32, np.int32)
        new, before = x.copy(), np.zeros(32, np.int32)
        for place, (each, value) in enumerate(zip(index, v, strict=True)):
            before[place], new[each] = new[each], value
        new[0] += 32
        tensor, old = launches.put(x), launches.put(np.zeros(32, np.int32))
        given = (launches.put(index), launches.put(v))
        launches(repeated_kernel, (1,), tensor, old, *given, BLOCK=32)
        return [(tensor, new, 0), (old, before, 0)]

    assert run(program).error == 0


@triton.jit
def bits_kernel(X, V, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(V + offs)
    tl.atomic_and(X + offs, v, sem="acquire")
    tl.atomic_or(X + BLOCK + offs, v, sem="release")
    tl.atomic_xor(X + 2 * BLOCK + offs, v, scope="cta")
    tl.atomic_cas(X + 3 * BLOCK + offs, v - v, v)


def test_bits_are_combined_and_compared():
    def program(launches: Launches):
        x = launches.draw.integers(-99, 99, 64, np.int32)
        x[48::2] = 0
        v = launches.draw.integers(-99, 99, 16, np.int32)
        tensor = launches.put(x)
        launches(bits_kernel, (1,), tensor, launches.put(v), BLOCK=16)
        parts = x.reshape(4, 16)
        last = np.where(parts[3] == 0, v, parts[3])
        return [(tensor, np.concatenate([parts[0] & v, parts[1] | v, parts[2] ^ v, last]), 0)]

    assert run(program).error == 0


@triton.jit
def float_extremes_kernel(X, V, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(V + offs)
    tl.atomic_max(X + offs, v)
    tl.atomic_min(X + BLOCK + offs, v, mask=v < 0.5)


def test_floats_of_both_signs_are_compared_under_a_mask_of_data():
    def program(launches: Launches):
        x, v = launches.normal(32), launches.normal(16)
        tensor = launches.put(x)
        launches(float_extremes_kernel, (1,), tensor, launches.put(v), BLOCK=16)
        low = np.where(v < 0.5, np.minimum(x[16:], v), x[16:])
        return [(tensor, np.concatenate([np.maximum(x[:16], v), low]), 0)]

    assert run(program).error == 0


def names(case: str) -> list[str]:
    simulation = run(CASES[case].program, record=True).simulation
    (rows,) = simulation.records.values()
    return [each.name for each in rows if each.engine == "hbm_ctrl"]


def test_what_no_command_reads_is_not_sent_back():
    assert set(names("histogram, atomic")) == {"atomic add"}
    counted = names("rows from a work counter")
    assert counted.count("atomic add") == counted.count("atomic old") == 24


@pytest.mark.parametrize("name", ATOMICS)
def test_a_replay_of_the_op_log_gives_the_same_memories(name: str):
    def program(_rank: int) -> None:
        _ = [result.numpy() for result, _, _ in CASES[name].program(Launches())]

    world = simulate(program, 1, topology=PES, verify=True)
    addresses = AddressMap(parse_topology(PES, "topology.yaml", 1))
    verdict = verify(world.records, world.written, world.contents, addresses)
    assert verdict.passed, verdict.problems


@pytest.mark.parametrize("name", ATOMICS)
def test_locks_and_counters_are_no_races(name: str):
    assert checked(run(CASES[name].program, record=True).simulation).reports == 0


@triton.jit
def passing_kernel(X, Flag, Out, SEM: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(X + offs, offs * 2)
        tl.atomic_xchg(Flag, 1, sem=SEM)
    else:
        while tl.atomic_cas(Flag, 1, 2, sem=SEM) == 0:
            pass
        tl.store(Out + offs, tl.load(X + offs))


def passed(sem: str) -> Any:
    def program(launches: Launches):
        x, out = launches.spread(np.zeros(64, np.int32)), launches.empty(64, dtype=np.int32)
        launches(passing_kernel, (2,), x, launches.empty(1, dtype=np.int32), out, sem, N=64)
        return [(out, 2 * np.arange(64), 0)]

    return run(program, record=True)


def test_a_release_and_an_acquisition_order_other_accesses_and_relaxed_operations_do_not():
    ordered = passed("acq_rel")
    assert ordered.error == 0
    assert checked(ordered.simulation).reports == 0
    assert checked(passed("relaxed").simulation).races


@triton.jit
def unlocked_kernel(X, Lock, LOCKED: tl.constexpr):
    if LOCKED:
        while tl.atomic_cas(Lock, 0, 1) == 1:
            pass
    tl.store(X, tl.load(X) + 1)
    if LOCKED:
        tl.atomic_xchg(Lock, 0)


def test_stores_of_programs_are_in_an_order_under_a_lock_alone():
    def program(launches: Launches, is_locked: bool):
        x = launches.spread(np.zeros(64, np.int32))
        launches(unlocked_kernel, (8,), x, launches.empty(1, dtype=np.int32), LOCKED=is_locked)
        return [(x, np.append(8, np.zeros(63)), 0)]

    assert run(lambda launches: program(launches, is_locked=True)).error == 0
    with pytest.raises(KernelError, match="stores to elements 0:1"):
        run(lambda launches: program(launches, is_locked=False))


def test_a_kernel_with_an_atomic_operation_runs_its_function(monkeypatch: pytest.MonkeyPatch):
    def program(launches: Launches):
        for _ in range(3):
            launches.draw = np.random.default_rng(0)
            results = CASES["maximum of all rows, atomic"].program(launches)
        return results

    outcomes = []
    for fold in ("1", "0"):
        monkeypatch.setenv(FOLD, fold)
        outcomes.append(run(program))
    folded, plain = (each.simulation for each in outcomes)
    assert max(each.error for each in outcomes) <= 1
    assert folded.digest == plain.digest
    assert folded.done.listed_kernels + folded.done.repeated_kernels == 0


@pytest.mark.slow
@pytest.mark.multiproc
def test_sums_have_the_bits_of_one_order_for_each_number_of_processes_seed_and_core(
    tmp_path: Path,
):
    def printed(procs: int, **environment: str) -> list[str]:
        done = subprocess.run(
            [
                *(sys.executable, "launch.py", "--sips", "2", "--procs", str(procs)),
                *("--out", str(tmp_path / "run")),
                *("--bench", "tests/triton/programs/atomic_sums.py:atomic_sums"),
            ],
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return sorted(re.findall(r"= rank .*|digest +\w+", done.stdout))

    expected = printed(1, PYTHONHASHSEED="1")
    assert len(expected) == 3
    assert sum("programs: 16" in line for line in expected) == 2
    assert printed(2, PYTHONHASHSEED="2") == expected
    assert printed(2, KERNBENCH_CORE="python") == expected


def test_a_launch_of_replicas_has_a_counter_for_each():
    """An address leads to the replica of the own PE, so operations on one element are no more."""

    def program(launches: Launches):
        count = torch.from_numpy(np.zeros(1, np.int32), dp=DPPolicy(pe="replicate", num_cubes=1))
        x = launches.spread(np.zeros(20, np.int32))
        launches(counting_kernel, (4,), x, count)
        return [(x, np.array([0] * 20), 0)]

    assert run(program).error == 0


@triton.jit
def counting_kernel(X, Count):
    tl.store(X + tl.program_id(0) * 5, tl.atomic_add(Count, 1))
