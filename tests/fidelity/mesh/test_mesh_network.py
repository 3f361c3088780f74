"""Traffic of the 4x4 mesh, its latencies at low load, and its reference."""

import pytest
from click.testing import CliRunner

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import seeded
from tests.fidelity.mesh.mesh_checks import reference
from tests.fidelity.mesh.mesh_network import (
    NODES,
    MeshNetwork,
    MeshRouter,
    Traffic,
    destination,
    gap,
)
from tests.fidelity.mesh.traffic import main
from tests.fidelity.plan import fixed_parts
from tests.support.topologies import default_text

pytestmark = pytest.mark.fidelity


def test_every_pattern_sends_to_nodes_of_the_mesh_and_permutations_reach_each_once() -> None:
    rng = seeded(1)
    for pattern in ("transpose", "bitcomp", "neighbor"):
        assert sorted(destination(pattern, node, rng) for node in range(NODES)) == list(
            range(NODES)
        )
    assert {destination("uniform", 5, rng) for _ in range(500)} == set(range(NODES))


def test_patterns_are_those_of_the_reference_simulator() -> None:
    rng = seeded(1)
    # Nodes are row * 4 + column: transpose swaps them, bitcomp inverts all four bits, neighbor adds
    # one to each modulo 4.
    assert [destination(pattern, 1, rng) for pattern in ("transpose", "bitcomp", "neighbor")] == [
        4,
        14,
        6,
    ]
    assert destination("neighbor", 15, rng) == 0


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
def test_gaps_of_a_bernoulli_process_have_its_mean(rate: float) -> None:
    rng, count = seeded(3), 20_000
    gaps = [gap(rng, rate) for _ in range(count)]
    assert min(gaps) == 1
    assert sum(gaps) / count == pytest.approx(1 / rate, rel=0.03)


def test_at_full_load_there_is_a_packet_every_cycle() -> None:
    assert {gap(seeded(1), 1.0) for _ in range(9)} == {1}


def test_the_reference_is_shipped_with_twenty_loads() -> None:
    latencies = reference()
    assert len(latencies) == 20
    assert latencies[0.95] == 27.2627
    assert list(latencies.values()) == sorted(latencies.values())


def test_all_loads_of_the_reference_are_run_in_full() -> None:
    every = fixed_parts(1, full=True)
    run = {part.args[1] for part in every if part.prefix.startswith("e.uniform")}
    assert run == set(reference())


@pytest.mark.parametrize(
    ("pattern", "mean_hops"), [("transpose", 3.5), ("bitcomp", 5.0), ("neighbor", 4.0)]
)
def test_other_patterns_take_their_zero_load_latency_at_low_load(
    pattern: str, mean_hops: float
) -> None:
    # Mean number of routers: 1 + 2 x 1.25 (|row - column| twice), 1 + 4 (opposite corners), 1 + 2 x
    # 1.5 (one hop, or three hops back, in each dimension).
    outcome = MeshNetwork(TopologyFile.of(default_text())).run(
        Traffic(pattern, 0.01, 1, 1), 3_000, 300
    )
    assert outcome.latency_cycles == pytest.approx(3 * mean_hops + 2, rel=0.05)
    assert outcome.accepted == pytest.approx(0.01, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(("load", "status"), [("0.1", "stable"), ("0.95", "unstable")])
def test_a_mesh_with_credits_is_stable_or_not(load: str, status: str) -> None:
    router = MeshRouter("credits", 3, 2, 4)
    seen = MeshNetwork(TopologyFile.of(default_text()), router).run(
        Traffic("hotspot", float(load), 1, 1), 600, 60, drains=False
    )
    assert seen.stable == (status == "stable")


def test_traffic_on_the_mesh_is_printed_as_csv() -> None:
    arguments = "--pattern neighbor --load 0.02 --load 0.01 --flits 8 --seed 3"
    printed = CliRunner().invoke(main, arguments.split())
    header, *lines = printed.stdout.splitlines()
    assert header == (
        "flow_control,router_stages,vcs,buffer_flits,pattern,flits,offered,seed,"
        "avg_latency_cycles,accepted,status"
    )
    assert [line.split(",")[:8] for line in lines] == [
        ["unlimited", "", "", "", "neighbor", "8", "0.02", "3"],
        ["unlimited", "", "", "", "neighbor", "8", "0.01", "3"],
    ]
    # Four routers on average: 3 x 4 + 1 + 8 cycles, and short waits.
    assert 20.5 < float(lines[1].split(",")[8]) < 22


@pytest.mark.parametrize("load", ["nan", "inf", "-inf", "-0.5", "0", "1.01", "much"])
def test_a_load_that_is_no_share_of_the_capacity_is_refused(load: str) -> None:
    refused = CliRunner().invoke(main, ["--load", load])
    assert refused.exit_code == 2
    assert "--load" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("", "--load"),
        ("--load 0.1 --vcs 3", "--vcs needs credits"),
        ("--load 0.1 --pattern ring", "'uniform', 'transpose', 'bitcomp'"),
    ],
)
def test_a_wrong_option_is_named(arguments: str, problem: str) -> None:
    refused = CliRunner().invoke(main, arguments.split())
    assert refused.exit_code == 2
    assert problem in refused.stderr
