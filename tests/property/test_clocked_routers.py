"""Rules of the clocked routers: which of them decide what a run does, and which do not.

The tests replace methods, so they run interpreted; the compiled core starts another process.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.clocked.cycle_queue import Cycle, CycleQueue
from sip_node.chip.fabric.clocked.injection import Injection
from sip_node.chip.fabric.clocked.virtual_channels import VirtualChannel
from sip_node.chip.fabric.packet import Packet
from sip_node.kernel.containers import linked_list as lists
from tests.fidelity.mesh.mesh_network import NODES, MeshNetwork, MeshRouter
from tests.support.credited_machines import PACKETS, CreditedMachine
from tests.support.topologies import default_text

pytestmark = pytest.mark.slow
interpreted = pytest.mark.skipif(IS_COMPILED, reason="compiled methods cannot be replaced")
FILE = TopologyFile.of(default_text())
EXECUTE = CycleQueue.proceed


@pytest.mark.skipif(not IS_COMPILED, reason="the suite runs interpreted already")
def test_the_rules_of_the_interpreted_routers() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__],
        env={**os.environ, "KERNBENCH_CORE": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:]


class _Log:
    def __init__(self, network: MeshNetwork) -> None:
        self.arrivals: list[tuple[int, int, int]] = []
        self._network = network

    def accept(self, packet: Packet, tail_ps: int) -> None:
        self.arrivals.append((packet.transfer.source_node, packet.transfer.sent_ps, tail_ps))


def arrivals(router: MeshRouter, packets: list[tuple[int, int, int, int]]) -> list[tuple[int, ...]]:
    network = MeshNetwork(FILE, router)
    log = _Log(network)
    for pe in network.pes:
        network.fabric.attach(pe, log)
    for cycle, source, target, flits in packets:
        network.engine.at(cycle * 1000, network.send, source, target, flits * 64)
    network.engine.run_before(NEVER_PS)
    return sorted(log.arrivals)


PACKETS_OF_MESH = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, NODES - 1),
        st.sampled_from([0, 5, 6, 15]),
        st.integers(1, 6),
    ),
    min_size=1,
    max_size=30,
)
ROUTERS = st.builds(
    MeshRouter,
    flow_control=st.just("credits"),
    stages=st.integers(1, 4),
    vcs=st.integers(1, 4),
    buffer_flits=st.integers(1, 6),
)


def _requests(cycle: Cycle) -> list[Any]:
    found, item = list[Any](), lists.take(cycle)
    while item is not None:
        found.append(item)
        item = item.next
    return found


def _in_order(order: Callable[[list[Any]], object]) -> Callable[..., None]:
    """Execute the requests of a cycle in another order."""

    def execute(queue: CycleQueue, step: int, cycle: Cycle) -> None:
        requests = _requests(cycle)
        order(requests)
        for each in requests:
            lists.put(cycle, each)
        EXECUTE(queue, step, cycle)

    return execute


@interpreted
@settings(max_examples=6)
@given(router=ROUTERS, packets=PACKETS_OF_MESH, seed=st.integers(0, 99))
def test_routers_may_work_in_any_order(
    router: MeshRouter, packets: list[tuple[int, int, int, int]], seed: int
) -> None:
    expected = arrivals(router, packets)
    assert len(expected) == len(packets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CycleQueue, "proceed", _in_order(Random(seed).shuffle))
        assert arrivals(router, packets) == expected


def _place(channel: VirtualChannel) -> int:
    return channel.place()


def _fixed_heads(channel: VirtualChannel, wanted: VirtualChannel) -> int:
    del wanted
    return channel.place()


def _lowest_channel(injection: Injection, now: int) -> VirtualChannel:
    return next(vc for vc in injection.network.channels if 0 <= vc.credit() <= now)


@interpreted
@pytest.mark.parametrize(
    ("owner", "name", "rule"),
    [
        (VirtualChannel, "turn_at_input", _place),
        (VirtualChannel, "turn_at_output", _place),
        (VirtualChannel, "turn_at", _fixed_heads),
        (Injection, "_next_channel", _lowest_channel),
        (CycleQueue, "proceed", _in_order(list[Any].reverse)),
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
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, rule: Callable[..., Any]
) -> None:
    def is_noticed(seed: int) -> bool:
        expected = CreditedMachine(seed).run(PACKETS)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, rule)
            return CreditedMachine(seed).run(PACKETS) != expected

    assert any(map(is_noticed, range(40)))
