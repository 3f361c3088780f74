"""`examples/own_algorithm.py`: kernel, topology and entry of a user's algorithm."""

from pathlib import Path

import numpy as np
import pytest

from examples import own_algorithm
from runtime import torch
from runtime.core.config.config_file import default_file
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
ONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)


def entry() -> str:
    """The lines of the docstring for `ccl.yaml`."""
    text = Path(own_algorithm.__file__).read_text(encoding="utf-8")
    return text[text.index("  star:\n") : text.index('"""\n\nfrom')]


def with_entry() -> str:
    """The shipped file with the entry as its first algorithm."""
    lines = default_file("ccl.yaml").read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("algorithms:")) + 1
    return "".join([*lines[:first], entry(), *lines[first:]])


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("numel", [1, 3001])
def test_it_is_right_in_the_mock_runtime(ranks: int, numel: int) -> None:
    for shard in own_algorithm.run_in_mock(ranks, numel):
        np.testing.assert_array_equal(shard, np.full(numel, ranks * (ranks + 1) / 2, np.float32))


def test_it_is_right_on_the_chip_as_one_more_algorithm_of_the_file() -> None:
    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm="star")
        tensor = torch.full(700, rank + 1.0)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        return tensor.numpy()

    returned = simulate(program, 3, topology=ONE_PE, ccl=with_entry()).returned
    for values in returned.values():
        np.testing.assert_array_equal(values, np.full(700, 2, np.float32))
