"""The examples have the losses of gloo on 2 and 4 SIPs, and of a larger group."""

import re

import pytest

from tests.torch.conftest import EXAMPLES, Runs
from tests.torch.test_distributed import reported

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "how", "ranks", "lines"),
    [
        *(("gpt", how, ranks, 2) for how in ("ddp", "fsdp", "tp") for ranks in (2, 4)),
        *(("llama", how, ranks, 2) for how in ("tp", "sp") for ranks in (2, 4)),
        pytest.param("llama", "tp", 8, 2, marks=pytest.mark.nightly),
        *(("moe", "", ranks, 2) for ranks in (2, 4)),
        *(("ring_attention", "", ranks, 3) for ranks in (2, 4)),
    ],
)
def test_an_example_has_the_losses_of_gloo(
    name: str, how: str, ranks: int, lines: int, run: Runs, on_gloo: Runs
):
    program, words = str(EXAMPLES / f"{name}.py"), tuple(how.split())
    output = run(program, sips=ranks, program_arguments=words)
    expected = reported(on_gloo(program, *words, ranks=ranks))
    assert len(expected) == lines * ranks
    assert reported(output) == expected
    assert "False" not in str(expected)
    assert not re.search("warning|leaked", output, re.IGNORECASE)
    check_times(output)


def check_times(output: str) -> None:
    """All parts of a step take time, of which operators on the host have 5 % at most."""
    form = (
        r"^simulated us of a step: forward ([\d.]+), backward ([\d.]+), optimizer ([\d.]+); in "
        r"these, exposed communication ([\d.]+), operators on the host ([\d.]+); [\d.]+ s a step"
    )
    found = re.search(form, output, re.MULTILINE)
    assert found is not None, output
    *parts, exposed, on_host = map(float, found.groups())
    assert min(parts) > 0
    assert 0 < exposed < sum(parts)
    assert on_host <= 0.05 * sum(parts)
