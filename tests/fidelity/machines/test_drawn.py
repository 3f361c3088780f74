"""The machines that `validate` draws."""

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import Random
from runtime.model.keys import keys_of_group
from runtime.model.schema.meanings import KeyGroup
from tests.fidelity.machines.drawn import BANDWIDTHS, OVERHEADS, drawn
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())


@pytest.mark.parametrize("group", [KeyGroup.DELAY, KeyGroup.BANDWIDTH])
def test_every_delay_and_bandwidth_of_the_schema_is_drawn(group: KeyGroup):
    variant = drawn(FILE, Random(1))
    paths = [key.path for key in keys_of_group(group) if FILE[key.path]]
    assert len(paths) > 10
    assert [path for path in paths if variant[path] == FILE[path]] == []
    assert [path for path in paths if not 0.5 <= variant[path] / FILE[path] <= 2] == []


def test_the_order_of_the_sequence_is_that_of_the_schema_with_the_switch_last():
    assert (len(OVERHEADS), OVERHEADS[0]) == (17, "ucie.overhead_ns")
    assert OVERHEADS[-1] == "system.components.switch.overhead_ns"
    assert (len(BANDWIDTHS), BANDWIDTHS[0]) == (12, "ucie.bw_gbs")


def test_a_seed_draws_one_machine():
    assert drawn(FILE, Random(2)).text == drawn(FILE, Random(2)).text != drawn(FILE, Random(3)).text
