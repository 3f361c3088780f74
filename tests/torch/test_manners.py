"""Scripts with processes and threads of their own, and features that PyTorch has for GPUs."""

import re
from pathlib import Path

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(300)]


def lines(output: str) -> list[str]:
    """The lines that begin with `= `, without it; ranks print them in any order."""
    return sorted(re.findall(r"^= (.*)", output, re.MULTILINE))


def test_spawn_in_a_script_calls_its_function_in_the_ranks_of_the_run(run: Runs):
    output = run("spawned.py", program_arguments=["ranks"], sips=2)
    sums = [f"rank {rank} of 2: [3.0, 3.0, 3.0]" for rank in range(2)]
    assert lines(output) == ["0", "1", *sums]


def test_spawn_of_more_processes_than_ranks_names_the_command(run: Runs):
    output = run("spawned.py", program_arguments=["ranks", "4"], sips=2, code=1)
    assert "`kernbench run --sips 4 spawned.py`" in output


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_a_rank_has_neither_device_nor_group_and_names_the_line_to_write(
    method: str, run: Runs
):
    output = lines(run("spawned.py", program_arguments=[method]))
    refused = [each for each in output if "Error: " in each]
    assert len(refused) == 3
    for each in refused:
        assert "rank 0 has started" in each
        assert "main(int(os.environ['RANK']))" in each
    assert "sum on the CPU: 2.0" in output
    assert "exit code 0" in output


def test_workers_that_load_data_are_processes_as_before(run: Runs):
    output = run("spawned.py", program_arguments=["workers"])
    assert lines(output) == ["fork: [5.0, 50.0]", "spawn: [5.0, 50.0]"]


def test_tensors_in_files_of_safetensors_are_read_to_the_device_and_written_from_it(run: Runs):
    pytest.importorskip("safetensors", reason="safetensors is not installed: pip install it")
    output = run("safetensors_files.py", sips=2)
    assert lines(output) == [f"rank {rank}: {list(range(6))}" for rank in range(2)]
    output = run("safetensors_files.py", "--as-cuda", program_arguments=["cuda"], sips=2)
    assert lines(output) == [f"rank {rank}: {list(range(6))}" for rank in range(2)]


def test_remote_procedure_calls_are_refused_with_what_to_write(run: Runs):
    (line, other) = lines(run("spawned.py", program_arguments=["remote"], sips=2))
    assert line == other
    assert line.startswith("NotImplementedError: torch.distributed.rpc: ")
    assert line.endswith("exchange tensors by send, recv and collectives")


def test_a_thread_without_a_rank_is_named_with_what_to_do(run: Runs):
    (line,) = lines(run("spawned.py", program_arguments=["thread"]))
    assert line.startswith("RuntimeError: thread 'T' is not that of a rank")
    assert "copy them to the device in the main thread" in line


def numbers(output: str) -> dict[str, list[float]]:
    """The numbers of the lines, by what precedes them."""
    values: dict[str, list[float]] = {}
    for line in lines(output):
        name, _, listed = line.partition(": ")
        values.setdefault(name, []).extend(float(each) for each in listed.split())
    return values


def test_features_of_gpus_give_the_numbers_of_equal_computations_with_gloo(
    run: Runs, on_gloo: Runs, tmp_path: Path
):
    expected = numbers(on_gloo("rank_features.py", str(tmp_path / "gloo"), ranks=2))
    found = numbers(run("rank_features.py", program_arguments=[str(tmp_path / "own")], sips=2))
    assert len(expected) == 14
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=1e-4, abs=2e-5), name
