"""The checks of the vector engine cover every operation of the kernel language."""

import pytest

from kernbench.oracle.checks.engines.vector_times import by_function
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.language.functions import NAMES
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())


@pytest.mark.slow
def test_there_is_a_row_for_each_operation() -> None:
    ids = [check.id for check in by_function(FILE)]
    assert len(ids) == len(set(ids))
    assert set(ids) == {f"v.function.{name}" for name in NAMES} | {"v.cost"}


def test_an_operation_that_does_not_fit_in_the_scratch_has_no_row() -> None:
    wide = FILE.with_values({"pe.math.lanes": 1 << 16})
    ids = {check.id for check in by_function(wide)}
    assert "v.function.exp" not in ids
    assert "v.cost" in ids
