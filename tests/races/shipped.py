"""`python -m tests.races.shipped [PART ...]`: no report on what ships, with and without `--strict`.

Collectives, benches and the tests of the suite simulate inside this process; examples and programs
of PyTorch are commands. Each run is checked in both modes. The exit code is 1 if there is a report.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple

import click
import pytest

from kernbench.explain.check.findings import Findings, check_records
from kernbench.explain.check.report import finding_lines
from kernbench.explain.records import RunRecords, open_run
from tests.races.checked_simulations import checked_simulations
from tests.races.covering_programs import Program, benches, collectives
from tests.support.runs import ROOT, called

MODES = ("check", "check --strict")
COMMANDS = """
--sips 1 examples/fused_gemm.py --cubes 2 --pes 4
--sips 1 examples/gqa_panel.py
--sips 1 examples/gqa_panel.py --prefill
--sips 1 examples/large_matmul.py --size 96
--sips 4 examples/linear_regression.py
--sips 2 examples/llama_layer.py decode --scale 8
--sips 2 examples/overlap.py
--sips 1 examples/placement.py
--sips 1 examples/placement.py --on all
--sips 2 examples/pytorch_attention.py
--sips 2 examples/pytorch_fsdp.py
--sips 2 examples/pytorch_megatron_mlp.py
--sips 2 examples/pytorch_moe.py
--sips 2 examples/pytorch_nccl_tests.py
--sips 2 examples/pytorch_pipeline.py
--sips 2 examples/pytorch_point_to_point.py
--sips 2 examples/sharded_sgd.py --pes 4
--sips 2 examples/softmax.py
--sips 4 examples/tensor_parallel.py --size 2
--sips 1 examples/kernels/flash_attention.py --tokens 256
--sips 1 examples/kernels/flash_attention.py --tokens 256 --causal
--sips 1 examples/kernels/gemv.py --cubes 2 --pes 4 --rows 64 --columns 256
--sips 1 examples/kernels/layer_norm.py --cubes 2 --pes 4 --rows 64
--sips 1 examples/kernels/matmul.py --cubes 1 --pes 8
--sips 1 examples/kernels/paged_attention.py --users 2 --pages 20
--sips 1 examples/kernels/softmax.py --cubes 2 --pes 4 --rows 64
--sips 1 examples/kernels/vector_add.py --cubes 2 --pes 4 --count 65536
--sips 2 --bench examples/own_bench.py:scale-check --factor 2
--sips 2 --bench qkv-gemm-multi-pe --scale 96 --seq 20 --cubes 2 --pes 4
--sips 2 --bench tp-attention-block
--sips 2 --bench tp-mlp
--sips 2 examples/torch/gpt.py ddp
--sips 2 examples/torch/gpt.py fsdp
--sips 2 examples/torch/gpt.py tp
--sips 2 examples/torch/llama.py tp
--sips 2 examples/torch/llama.py sp
--sips 2 examples/torch/moe.py
--sips 1 examples/torch/operators.py add gelu softmax
--sips 1 examples/torch/own_kernels.py
--sips 2 examples/torch/ring_attention.py
--sips 2 tests/torch/programs/collectives.py
--sips 1 tests/torch/programs/cycles.py
--sips 2 tests/torch/programs/data_parallel.py
--sips 1 tests/torch/programs/losses.py
"""
SUITE = ("tests/integration",)
"""The tests of programs that have to be right; those of tests/races and of the mock are others."""
BY_TENSOR = (
    "test_streams.py::test_a_kernel_on_the_tensor_that_is_reduced_waits_for_the_collective",
    "test_streams.py::test_reading_a_tensor_waits_for_its_collective_and_reading_another_one_does",
    "test_streams.py::test_writing_a_tensor_waits_for_its_collective",
    "test_streams_programs.py::test_overlap_changes_no_result",
    "test_torch_distributed_point_to_point.py::test_works_of_a_rank_complete_in_the_order_of_the",
    "test_torch_distributed_point_to_point.py::test_a_kernel_between_two_collectives_reads_the",
    "test_torch_fills.py::test_a_fill_is_in_the_order_of_the_commands_that_use_its_tensor",
    "test_torch_streams.py::test_a_tensor_orders_streams_without_an_event",
    "test_torch_streams.py::test_memory_that_a_stream_may_still_use_is_not_that_of_another_tensor",
    "test_torch_streams.py::test_a_new_stream_waits_for_nothing_but_the_memory_that_it_uses_again",
)
"""Tests of the order by a common tensor, the order that `--strict` leaves out: it has to report
them.
"""
RACY = ("test_verify_simulations.py::test_a_race_of_the_program_is_named_where_its_data_differ",)
"""Tests of programs with a race, which both modes have to report."""


class CheckedRun(NamedTuple):
    """A run with its findings in each mode."""

    name: str
    findings: tuple[Findings, ...]


def checked_run(name: str, records: RunRecords) -> CheckedRun:
    """The findings of a run in both modes."""
    both = (check_records(records, is_strict=is_strict) for is_strict in (False, True))
    return CheckedRun(name, tuple(both))


def checked_programs(programs: Mapping[str, Program]) -> Iterator[CheckedRun]:
    """Programs that simulate inside this process."""
    for name, program in programs.items():
        runs = list[RunRecords]()
        with checked_simulations(runs.append), redirect_stdout(StringIO()):
            program()
        for each in runs:
            yield checked_run(name, each)


def _commands() -> Iterator[CheckedRun]:
    """Examples, benches and programs of tests."""
    for line in COMMANDS.strip().split("\n"):
        with TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            imported = "torch" if "torch/" in line else ""
            run = called(ROOT, "--out", str(out), *line.split(), directory=out, imported=imported)
            if run.code:
                raise click.ClickException(f"{line} ended with {run.code}: {run.err[-2000:]}")
            yield checked_run(line, open_run(out))


class _SuiteTests:
    """A plugin of pytest which has the name of the test that runs."""

    name = ""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.name = item.nodeid


def _suite() -> Iterator[CheckedRun]:
    """The simulations of tests."""
    tests, runs = _SuiteTests(), list[CheckedRun]()

    def check(records: RunRecords) -> None:
        run = checked_run(tests.name, records)
        plain, strict = run.findings
        if any(each in tests.name for each in (*BY_TENSOR, *RACY)):
            expected[tests.name] = expected.get(tests.name, 0) + strict.reports
            run = run._replace(findings=(plain, plain))
        if any(each in tests.name for each in RACY) and plain.reports:
            run = run._replace(findings=())
        runs.append(run)

    expected = dict[str, int]()
    options = ["-q", "-p", "no:randomly", "-m", "not nightly"]
    with checked_simulations(check), redirect_stdout(StringIO()):
        pytest.main([*options, *SUITE], plugins=[tests])
    for each in (*BY_TENSOR, *RACY):
        if not sum(count for name, count in expected.items() if each in name):
            raise click.ClickException(f"{each} has no report with --strict")
    yield from runs


PARTS: Mapping[str, Callable[[], Iterator[CheckedRun]]] = {
    "collectives": lambda: checked_programs(collectives()),
    "benches": lambda: checked_programs(benches()),
    "commands": _commands,
    "suite": _suite,
}


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
def main(parts: tuple[str, ...]) -> None:
    """Check the runs of all PARTS, or of those that are named."""
    runs, reports = 0, [0] * len(MODES)
    for part in parts or PARTS:
        begin_s, before = monotonic(), runs
        for run in PARTS[part]():
            runs += 1
            for mode, findings in enumerate(run.findings):
                reports[mode] += findings.reports
            if any(each.reports for each in run.findings):
                click.echo("\n".join(finding_lines(run.findings[-1], run.name)))
        click.echo(f"{part:<14}  {runs - before} runs, {monotonic() - begin_s:.0f} s")
    for mode, count in zip(MODES, reports, strict=True):
        click.echo(f"{mode:<14}  {runs} runs, {count} reports")
    raise SystemExit(1 if any(reports) else 0)


if __name__ == "__main__":
    main()
