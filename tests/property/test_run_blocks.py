"""Messages between LPs, valid and mutated: both modes accept the same ones, with one result."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.frames import Message
from sip_node.chip.ports.packet_rules import PacketRules
from tests.support.random_messages import SPEC, outcome
from tests.support.two_modes import printed

SEEDS = 150


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
def test_both_modes_accept_and_refuse_the_same_messages() -> None:
    interpreted, compiled = printed("tests.support.random_messages", SEEDS)
    assert len(compiled) == SEEDS
    for seed, (expected, found) in enumerate(zip(interpreted, compiled, strict=True)):
        assert expected == found, f"seed {seed}"


def test_the_messages_are_valid_and_break_many_rules() -> None:
    found = [entry for seed in range(SEEDS) for entry in outcome(seed)]
    refused = {entry[0] for entry in found if isinstance(entry, tuple) and len(entry) == 1}
    assert len(refused) > SEEDS // 3, "few kinds of faults were tried"
    assert found.count(("",)) > 5 * SEEDS, "few messages were valid"


def test_a_rule_that_one_mode_lacks_is_seen() -> None:
    rules = PacketRules(SPEC)

    def lenient(message: Message) -> str:
        fault = rules.fault(message)
        return "" if "is not in the memory" in fault else fault

    assert any(outcome(seed, lenient) != outcome(seed) for seed in range(40))
