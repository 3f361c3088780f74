"""Every kernel of the table gives the results of its reference, on simulated PEs."""

import pytest

import tests.triton.kernels_language
import tests.triton.kernels_layers
import tests.triton.kernels_tutorials
from tests.triton.cases import CASES, Case, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_kernel_gives_the_results_of_its_reference(case: Case):
    assert run(case.program).error <= 1
