"""Every kernel of the table gives the results of its reference, on simulated PEs."""

import pytest

from tests.triton.all_kernels import ALL
from tests.triton.cases import Case, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", ALL, ids=[each.name for each in ALL])
def test_a_kernel_gives_the_results_of_its_reference(case: Case):
    assert run(case.program).error <= 1
