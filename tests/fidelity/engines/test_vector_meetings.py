"""The checks of the vector engine beside a matrix product."""

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.language.functions import ACTIVATIONS
from tests.fidelity.engines.vector_meetings import epilogues, meetings
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())


@pytest.mark.slow
def test_the_meetings_do_not_depend_on_the_numbers_of_the_file() -> None:
    slow = FILE.with_values({"pe.fetch_store.bw_gbs": 7, "pe.math.lanes": 3, "pe.tile.k": 5})
    checks = meetings(slow)
    assert checks
    assert all(check.passed for check in checks)


@pytest.mark.slow
def test_there_is_a_row_for_each_activation() -> None:
    assert {check.id for check in epilogues(FILE)} == {f"v.epilogue.{name}" for name in ACTIVATIONS}
