"""Programs of several ranks print what they print with gloo on CPUs."""

import re
from pathlib import Path

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]


def reported(output: str) -> list[str]:
    """The lines that begin with `= `, which ranks print in any order."""
    return sorted(re.findall(r"^= .*", output, re.MULTILINE))


def values(output: str) -> tuple[list[str], list[float]]:
    """Reported lines without their numbers with a decimal point, and these numbers."""
    number = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
    lines = "\n".join(reported(output))
    return number.sub("#", lines).splitlines(), [float(each) for each in number.findall(lines)]


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_give_what_gloo_gives(ranks: int, run: Runs, on_gloo: Runs):
    expected = reported(on_gloo("collectives.py", ranks=ranks))
    assert len(expected) >= 16 * ranks
    assert reported(run("collectives.py", sips=ranks)) == expected


def test_data_parallel_training_gives_the_losses_of_gloo(run: Runs, on_gloo: Runs):
    expected = reported(on_gloo("data_parallel.py", ranks=2))
    assert len(expected) == 8
    assert reported(run("data_parallel.py", sips=2)) == expected


def test_what_pytorch_builds_on_collectives_gives_what_gloo_gives(run: Runs, on_gloo: Runs):
    expected = reported(on_gloo("parallelism.py", ranks=2))
    assert len(expected) == 16
    assert reported(run("parallelism.py", sips=2)) == expected


def digest(output: str) -> str:
    (found,) = re.findall(r"^digest +(\w+)$", output, re.MULTILINE)
    return found


def test_delays_hash_seeds_and_both_cores_have_one_digest(run: Runs):
    digests = {
        digest(run("data_parallel.py", *flags, sips=2, **environment))
        for flags, environment in (
            ((), {}),
            (("--jitter-ms", "2"), {"PYTHONHASHSEED": "7"}),
            ((), {"KERNBENCH_CORE": "python"}),
        )
    }
    assert len(digests) == 1


def test_a_rank_has_one_thread_for_values_of_the_host_on_every_machine(run: Runs):
    assert reported(run("host_values.py")) == ["= results 1", "= threads 1"]


def test_the_first_vector_function_of_two_threads_has_the_accuracy_of_later_ones(run: Runs):
    """One run in three notices it if one thread does not make the call at the connection."""
    assert reported(run("host_values.py", OMP_NUM_THREADS="2")) == ["= results 1", "= threads 2"]


def test_the_moments_of_garbage_collection_change_neither_addresses_nor_times(run: Runs):
    """A collection that deleted the cycles of the program would free their memory."""
    outputs = [run("cycles.py", sips=2, **each) for each in ({}, {"THRESHOLD": "1"})]
    assert len(reported(outputs[0])) == 6
    assert reported(outputs[1]) == reported(outputs[0])
    assert digest(outputs[1]) == digest(outputs[0])


def test_ranks_that_share_a_process_are_refused(run: Runs):
    output = run("data_parallel.py", "--procs", "1", sips=2, code=2)
    assert "In one process they would share what is theirs alone" in output


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_pytorch_builds_on_groups_has_the_values_of_gloo(
    ranks: int, run: Runs, on_gloo: Runs, tmp_path: Path
):
    expected = values(on_gloo("features.py", ranks=ranks, TEMP_DIR=str(tmp_path)))
    found = values(run("features.py", sips=ranks, TEMP_DIR=str(tmp_path)))
    assert found[0] == expected[0]
    # Sums have another order; float32 has 24 bits.
    assert found[1] == pytest.approx(expected[1], rel=1e-5, abs=1e-6)


def test_collectives_run_beside_work_that_does_not_use_their_tensors(run: Runs):
    line, _ = reported(run("overlap.py", sips=2))
    product, reduced, in_turn, at_once = map(int, re.findall(r"\d+", line)[:4])
    assert in_turn > 0.95 * (product + reduced)
    assert at_once < product + 0.25 * reduced


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("dist.all_reduce(ones(4 + RANK))", "rank 1 is in group1 of ranks 0 to 1 #1: all_reduce"),
        ("dist.all_reduce(ones(4).short())", "TypeError: a reduction of elements of torch.int16"),
        ("dist.new_group(backend='gloo')", "ValueError: backend 'gloo' in a run of kernbench"),
        ("torch.ones(1, device=f'ahbm:{RANK + 1}')", "a rank owns one SIP, 'ahbm:"),
        ("torch.empty(1 << 40, device='ahbm')", "OutOfMemoryError: ahbm out of memory: a storage"),
        ("RANK or dist.all_reduce(ones(4))", "rank 1 has finished its program"),
    ],
)
def test_a_wrong_call_is_an_error_that_names_its_line(
    call: str, error: str, run: Runs, tmp_path: Path
):
    script = tmp_path / "wrong.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('ahbm')\n"
        "RANK, ones = dist.get_rank(), lambda count: torch.ones(count, device='ahbm')\n"
        f"{call}\n"
    )
    output = run(str(script), sips=2, code=1)
    kind, _, text = error.partition(": ")
    # The line of the error has the simulated time between its type and its text.
    named = rf"raised {kind} at [\d.,]+ ns: {re.escape(text)}"
    expected = named if kind.endswith("Error") else re.escape(error)
    assert re.search(expected, output)
    assert re.search(r"wrong\.py(:|\", line )4\b", output)


def test_a_wait_for_a_key_of_another_rank_is_an_error_at_once(run: Runs):
    output = run("store.py", sips=2, code=1)
    assert re.search(
        r"rank 0 raised DistStoreError.*a store has no key '.*other' on rank 0", output
    )
