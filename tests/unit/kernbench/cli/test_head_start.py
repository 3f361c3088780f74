"""The number of processes of a run, seen from its arguments before they are parsed."""

import pytest

from kernbench.benches.short_runs import procs_by_cores
from kernbench.cli.head_start import guessed_procs
from runtime.core.cores import usable_cores


@pytest.mark.parametrize(
    ("arguments", "procs"),
    [
        ("--sips 4", 4),
        ("run --sips=4", 4),
        ("--sips 4 --procs 2", 2),
        ("--sips 4 --procs 1", 1),
        ("--sips 2 --bench gemm-single-pe --m 64", 2),
        ("--bench congestion --size 5 --sips 3", 3),
        ("--sips 2 train.py --sips 9", 2),
        ("perf all_reduce --sips 4 -b 8", 4),
        ("--sips 4 perf all_reduce -b 8", 4),
        ("--procs 3", 3),
        ("run --nproc-per-node 4 train.py", 4),
        ("--nproc_per_node=4 -m package.train --sips 2", 4),
    ],
)
def test_the_processes_of_a_run_are_seen_in_its_arguments(arguments: str, procs: int) -> None:
    assert guessed_procs(arguments.split()) == procs


def test_automatic_processes_are_one_for_each_core_at_most() -> None:
    assert guessed_procs(["--sips", "500", "--procs", "auto"]) == usable_cores()
    assert guessed_procs(["--sips", "1", "--procs", "auto"]) == 1


@pytest.mark.parametrize(
    ("arguments", "bench"),
    [
        ("--sips 3", "ccl-allreduce"),
        ("--bench tp-mlp --out d --sips 3", "tp-mlp"),
        ("--bench tp-mlp --tokens 9 --sips 3", None),
        ("--topology t.yaml --sips 3", None),
        ("perf all_reduce --sips 3", None),
        ("--sips 3 -m package.train", None),
        ("--sips 3 train.py", None),
    ],
)
def test_automatic_processes_of_a_short_bench_follow_from_its_name(
    arguments: str, bench: str | None
) -> None:
    assert guessed_procs(["--procs=auto", *arguments.split()]) == procs_by_cores(3, bench)


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "--help --sips 2",
        "--sips 2 --list",
        "list --sips 2",
        "validate --procs 2",
        "--sips two",
        "--sips 0",
        "--sips -1",
        "--sips 2 --procs 1.5",
        "--sips 2 --bench milestone-1h-gemm",
        "--sips 2 --bench 4",
        "--procs auto",
        "--sips",
        "train.py --sips 2",
    ],
)
def test_where_no_run_is_certain_nothing_is_started(arguments: str) -> None:
    assert guessed_procs(arguments.split()) is None
