"""`--no-data` with PyTorch: every time is that of a run with data, and what needs elements is an
error that names the reader.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

OF_FLOATS = "this run simulates no data (--no-data); guard this line with torch.ahbm.has_data()"
OF_INTEGERS = "and these integers depend on numbers of floating point"
READ = "an element of a tensor of torch.float32"
REFUSALS = {
    "item": rf"item\(\): {READ} with shape \[\]",
    "float": rf"item\(\): {READ}",
    "bool": r"item\(\): an element of a tensor of torch.bool",
    "if": r"item\(\): an element of a tensor of torch.bool",
    "tolist": rf"a copy to the CPU: {READ} with shape \[10, 8\]",
    "cpu": rf"a copy to the CPU: {READ} with shape \[10, 8\]",
    "to": rf"a copy to the CPU: {READ} with shape \[10, 3\]",
    "numpy": "a copy to the CPU",
    "repr": "masked_select: an element",
    "save": "a copy to the CPU",
    "integers": "a copy to the CPU: an element of a tensor of torch.int64",
    "svd": r"_linalg_svd\.U: an operand, which the host reads,",
    "nonzero": "nonzero: an element",
    "mask": r"index\.Tensor: an element",
    "equal": "equal: an element",
    "topk": r"topk\.values: an index, and with it an address,",
    "max": r"max\.dim_max: an index",
    "multinomial": "multinomial: an element",
    "rows": r"index\.Tensor: an index",
    "embedding": "index_select: an index",
    "bag": "_embedding_bag_forward_only: an element",
    "gather": r"gather\.out: an index",
    "put": "_index_put_impl_: an element",
    "cross_entropy": "cross_entropy_loss: an index",
    "bincount": "bincount: an element",
    "overwritten": "index_select: an index",
    "of bits": "index_select: an index",
    "freed": "a copy to the CPU: an element of a tensor of torch.int64",
    "scaler": r"item\(\): an element",
    "clipped": r"item\(\): an element",
    "collective": "all_gather: an element of a tensor of torch.float32 on the CPU",
}


def operations(out: Path) -> Iterator[dict[str, object]]:
    """The operations of a run, but for the checksums of their bytes."""
    with (out / "oplog.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            operation = json.loads(line)
            del operation["checksum"]
            yield operation


def check_times(run: Runs, path: Path, name: str, *arguments: str, sips: int = 1) -> list[str]:
    """The lines of a program, which are those of the run without data, as are its operations."""
    outs = path / "data", path / "none"
    with_data, without = (
        re.findall(
            r"^= .*$",
            run(name, *options, program_arguments=arguments, sips=sips, out=out),
            re.MULTILINE,
        )
        for out, options in zip(outs, ((), ("--no-data",)), strict=True)
    )
    # The processes of several ranks print at any moment.
    assert sorted(without) == sorted(with_data)
    pairs = zip(*map(operations, outs), strict=True)
    assert all(one == other for one, other in pairs)
    return with_data


def test_operators_losses_and_optimisers_take_the_times_of_a_run_with_data(
    run: Runs, tmp_path: Path
):
    assert len(check_times(run, tmp_path, "no_data.py")) == 16


@pytest.mark.parametrize("sips", [2, 3])
def test_collectives_take_the_times_of_a_run_with_data_and_deliver_known_integers(
    run: Runs, tmp_path: Path, sips: int
):
    lines = check_times(run, tmp_path, "no_data_ranks.py", "collectives", sips=sips)
    assert len(lines) == 7 * sips


@pytest.mark.parametrize("how", ["ddp", "fsdp", "tp"])
def test_the_steps_of_a_gpt_take_the_times_of_a_run_with_data(run: Runs, tmp_path: Path, how: str):
    assert len(check_times(run, tmp_path, "no_data_ranks.py", how, sips=2)) == 4


@pytest.mark.parametrize("seed", range(3))
def test_integers_that_are_known_are_those_of_a_run_with_data(run: Runs, seed: int):
    with_data, without = (
        re.findall(
            r"^= .*$",
            run("no_data_integers.py", *options, program_arguments=[str(seed)]),
            re.MULTILINE,
        )
        for options in ((), ("--no-data",))
    )
    known = [
        (one, other)
        for one, other in zip(with_data, without, strict=True)
        if not other.endswith("not known")
    ]
    assert all(one == other for one, other in known)
    assert len(known) > len(with_data) // 3


def test_what_needs_elements_is_an_error_that_names_its_reader(run: Runs):
    printed = run("no_data_refusals.py", "--no-data")
    found = dict(re.findall(r"^= ([\w ]+) \| (.*)$", printed, re.MULTILINE))
    assert found.keys() == REFUSALS.keys()
    for name, message in REFUSALS.items():
        assert re.match(rf"NoDataError \| {message}.* is not known, because this run", found[name])
        assert OF_FLOATS in found[name] or OF_INTEGERS in found[name]


def test_the_same_uses_work_in_a_run_with_data(run: Runs):
    printed = run("no_data_refusals.py")
    assert printed.count("| nothing") == len(REFUSALS)


def test_an_example_that_prints_its_loss_ends_at_that_line(run: Runs):
    printed = run(str(Path(__file__).parents[2] / "examples/torch/gpt.py"), "--no-data", code=1)
    assert re.search(r'File ".*gpt\.py", line \d+, in train\n.*loss\.item\(\)', printed)
    assert "rank 0 raised NoDataError at" in printed
    assert OF_FLOATS in printed
