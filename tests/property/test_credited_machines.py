"""The compiled routers are equal to their reference: every packet, counter and stalled packet."""

from collections.abc import Callable
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric import router
from sip_node.chip.fabric.credited_fabric import CreditedFabric, ReferenceCreditedFabric
from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.injection import Injection
from sip_node.chip.fabric.virtual_channels import InputVc, OutputVc
from sip_node.pdes.engine import Engine, ReferenceEngine
from tests.support.credited_machines import CreditedMachine, Observed

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

PACKETS = 60
EXECUTE = CycleQueue._execute


def reference(seed: int) -> Observed:
    return CreditedMachine(seed, ReferenceCreditedFabric, ReferenceEngine()).run(PACKETS)


def compiled(seed: int) -> Observed:
    return CreditedMachine(seed, CreditedFabric, Engine()).run(PACKETS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_a_machine_behaves_like_its_reference(seed: int) -> None:
    assert compiled(seed) == reference(seed)


@pytest.mark.nightly
def test_many_machines_behave_like_their_reference() -> None:
    assert [seed for seed in range(600) if compiled(seed) != reference(seed)] == []


def _fixed_inputs(channel: InputVc) -> tuple[int, int]:
    return (channel.port.index, channel.index)


def _fixed_heads(vc: OutputVc, channel: InputVc) -> tuple[int, int]:
    del vc
    return _fixed_inputs(channel)


def _lowest_channel(injection: Injection, now: int) -> Any:
    vcs = injection.network.vcs
    return next(vc for vc in vcs if vc.credits and vc.credits[0] <= now)


def _last_router_first(queue: CycleQueue, cycle: int) -> None:
    queue._requests[cycle].reverse()
    EXECUTE(queue, cycle)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "rule"),
    [
        (router, "_turn", _fixed_inputs),
        (router, "_turn_of_input", _fixed_inputs),
        (OutputVc, "turn", _fixed_heads),
        (Injection, "_next_vc", _lowest_channel),
        (CycleQueue, "_execute", _last_router_first),
    ],
    ids=[
        "turns of outputs",
        "turns of inputs",
        "turns of heads",
        "turns of channels",
        "order of routers",
    ],
)
def test_another_rule_for_ties_is_noticed(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, rule: Callable[..., Any]
) -> None:
    monkeypatch.setattr(owner, name, rule)
    assert any(compiled(seed) != reference(seed) for seed in range(40))
