"""`torch.compile(backend="aot_eager")` gives the results of the eager form, and compiles the frames
that it compiles on CPUs: none of kernbench.
"""

import re

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]
_ON_DEVICE_ONLY = "functions of the device"


def lines(output: str) -> list[str]:
    """The lines that begin with `= `, which ranks print in any order."""
    return sorted(re.findall(r"^= .*", output, re.MULTILINE))


@pytest.mark.parametrize("ranks", [1, 2])
def test_compiled_programs_have_eager_results_and_the_frames_of_gloo(
    ranks: int, run: Runs, on_gloo: Runs
):
    expected = lines(on_gloo("compiled.py", ranks=ranks))
    assert len(expected) == 16 * ranks
    assert all(": equal True, " in each for each in expected)
    compiled = lines(run("compiled.py", sips=ranks))
    assert [each for each in compiled if _ON_DEVICE_ONLY not in each] == expected
    own = [each for each in compiled if _ON_DEVICE_ONLY in each]
    assert len(own) == ranks
    for each in own:
        assert ": equal True, " in each
        assert each.endswith(", 0 of kernbench")
    two = [each for each in compiled if "two linear layers" in each]
    assert all(each.endswith("equal True, 1 frames, 0 breaks, 0 of kernbench") for each in two)
