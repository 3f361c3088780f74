"""The closed forms of the all-reduce study against numbers computed by hand."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
import yaml

from kernbench.oracle.theory.alpha_beta import AlphaBeta, RingQueue
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_1h_ccl.networks import NETWORKS, RingLayout, SipNetwork
from kernbench.studies.milestone_1h_ccl.reference import ASTRA_SIM, explained
from kernbench.studies.milestone_1h_ccl.rows import plan_points, reference_variant
from kernbench.studies.milestone_1h_ccl.theory import AllReduceTheory
from runtime.ccl.config import parse_ccl
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError

FILE = TopologyFile.of(read_text(default_file("topology.yaml")))
CCL = read_text(default_file("ccl.yaml"))
# Worked examples of docs/internals/rules.md, without the 32 ns of their bytes, and 3 ns to issue
# the command.
TO_NEXT_SIP_PS = 103_540 - 32_000 + 3000
TO_NEXT_CUBE_PS = 62_230 - 32_000 + 3000
QUEUE = RingQueue(slots=16, slot_bytes=4096, packet_bytes=256, credit_bytes=16)


@cache
def theory(network: SipNetwork, w: int = 1, h: int = 1, slots: int = 16) -> AllReduceTheory:
    """Closed forms of the shipped file with W x H cubes a SIP: the IO chiplet is at an end cube."""
    sips = FILE["system.sips"] | network.section
    return AllReduceTheory(
        FILE.with_values({"system.sips": sips, "sip.cube_mesh": {"w": w, "h": h}}).text,
        network,
        replace(QUEUE, slots=slots),
    )


def test_the_textbook_form_of_the_ring():
    # 14 steps of 500 ns and of 131072 B / 50 GB/s = 2621.44 ns.
    form = AlphaBeta(500_000, Fraction(50))
    assert form.ring_all_reduce_ps(8, 1 << 20) == 14 * (500_000 + 2_621_440)


def test_alpha_and_bandwidth_of_a_step_are_those_of_the_worked_example():
    link = theory(NETWORKS[0]).ring_link
    assert link.alpha_ps == TO_NEXT_SIP_PS
    assert link.gbs == 128


@pytest.mark.parametrize("network", [NETWORKS[0], NETWORKS[1], NETWORKS[3]], ids=str)
def test_the_ring_pays_one_link_a_step_in_every_topology(network: SipNetwork):
    # 6 steps of 64 B / 128 GB/s = 0.5 ns.
    assert theory(network).alpha_beta_ps("ring", 256) == 6 * (TO_NEXT_SIP_PS + 500)


def test_two_ranks_are_limited_by_their_memory():
    # Each of 1 MiB is read and written once, at 204.8 GB/s; the link moves 1 MiB at 128 GB/s.
    form_ps = theory(SipNetwork("ring_1d", 2, 1)).alpha_beta_ps("ring", 1 << 20)
    assert form_ps == 2 * TO_NEXT_SIP_PS + 2 * (1 << 20) * 5000 / 1024


@pytest.mark.parametrize(
    ("network", "w", "h", "expected_ps"),
    [
        # A row of two cubes there and back, whole; SIPs in a ring of two, half in each of 2 steps.
        (
            SipNetwork("ring_1d", 2, 1),
            2,
            1,
            2 * (TO_NEXT_CUBE_PS + 8000) + 2 * (TO_NEXT_SIP_PS + 4000),
        ),
        # SIPs in a row and a column of two without wrap: whole, there and back.
        (SipNetwork("mesh_2d_no_wrap", 2, 2), 1, 1, 4 * (TO_NEXT_SIP_PS + 8000)),
        # A torus: a half in each of two steps, along the row and along the column.
        (SipNetwork("torus_2d", 2, 2), 1, 1, 4 * (TO_NEXT_SIP_PS + 4000)),
    ],
)
def test_intercube_goes_to_the_root_between_sips_and_back(
    network: SipNetwork, w: int, h: int, expected_ps: int
):
    assert theory(network, w, h).alpha_beta_ps("intercube", 1024) == expected_ps


def test_a_long_shard_of_intercube_is_a_pipeline_each_way():
    # 64 KiB, more than four slots: three cubes in a row there and back pay two alphas and the bytes
    # once each way; so do three SIPs in a row.
    network, nbytes = SipNetwork("mesh_2d_no_wrap", 3, 1), 1 << 16
    alphas_ps = 2 * 2 * (TO_NEXT_CUBE_PS + TO_NEXT_SIP_PS)
    form_ps = theory(network, 3, 1).alpha_beta_ps("intercube", nbytes)
    assert form_ps == alphas_ps + 2 * 2 * nbytes * 1000 / 128


def test_the_parts_of_a_small_ring():
    # Messages of 64 B, one a step.
    file = FILE.with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
    costs = KernelCosts(file, QUEUE.packet_bytes)
    parts = theory(NETWORKS[0]).parts(256)
    assert parts is not None
    assert parts.moving_ps == 6 * 500
    assert parts.add_ps == 3 * costs.add_ps(64)
    assert parts.credit_ps == 0
    # Commands of 3 ns: six receives before the first load, the release of a message after each
    # addition and at the end.
    commands_ps = (6 + 3 + 1) * 3000
    memory_ps = costs.load_ps(64) + costs.store_ps(64)
    steps_ps = 6 * (TO_NEXT_SIP_PS + 500)
    assert parts.total_ps == commands_ps + memory_ps + steps_ps + parts.add_ps


def test_a_ring_with_few_slots_waits_for_credits_and_pays_alpha_more_often():
    few, many = (theory(NETWORKS[0], slots=slots).parts(1 << 20) for slots in (4, 64))
    assert few is not None
    assert many is not None
    assert few.moving_ps == many.moving_ps
    assert few.credit_ps > many.credit_ps == 0
    assert few.alpha_ps > many.alpha_ps


def test_a_ring_that_is_copied_out_has_no_parts():
    assert theory(NETWORKS[0], slots=2).parts(256) is None


@pytest.mark.parametrize("nbytes", [256, 1 << 20])
def test_the_bound_is_below_the_whole(nbytes: int):
    ring = theory(NETWORKS[0])
    parts = ring.parts(nbytes)
    assert parts is not None
    assert parts.moving_ps < ring.least_ps("ring", nbytes) < parts.total_ps


def test_the_bound_of_a_large_ring_is_its_link_and_of_a_small_ring_its_path():
    ring = theory(NETWORKS[0])
    assert ring.least_ps("ring", 256) == 6 * (TO_NEXT_SIP_PS + 500)
    # 1.5 x 1 MiB at 128 GB/s.
    assert ring.least_ps("ring", 1 << 20) == TO_NEXT_SIP_PS + 1.5 * (1 << 20) * 1000 / 128


@pytest.mark.parametrize("run", ASTRA_SIM, ids=str)
def test_the_closed_form_of_the_other_simulator_meets_its_times(run: tuple[int, int, float]):
    ranks, nbytes, time_us = run
    assert explained(ranks, nbytes).total_ns / 1000 == pytest.approx(time_us, rel=5e-4)


@pytest.mark.slow
def test_a_hop_with_the_parameters_of_the_reference_takes_500_ns_and_50_gbs():
    network = SipNetwork("ring_1d", 16, 1)
    values = {"system.sips": FILE["system.sips"] | network.section}
    link = AllReduceTheory(reference_variant(FILE).with_values(values).text, network).ring_link
    # Six ports, whose overhead is given to the picosecond.
    assert link.alpha_ps == pytest.approx(500_000, abs=6)
    assert link.gbs == Fraction(50)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_the_ring_of_every_network_follows_its_links(network: SipNetwork):
    values = {"system.sips": FILE["system.sips"] | network.section}
    layout = RingLayout.of(FILE.with_values(values).text, network.sips)
    assert sorted(layout.order) == list(range(network.sips))
    assert set(layout.steps) <= set(layout.links)


@pytest.mark.slow
def test_the_plan_has_every_network_kind_and_number_of_slots_once():
    points = plan_points(FILE.text, CCL, 1024)
    assert len(points) == len({(point.part, str(point)) for point in points})
    by_size = [
        (point.network, point.algorithm, point.nbytes) for point in points if point.part == "size"
    ]
    assert by_size == [
        (network, algorithm, nbytes)
        for network in NETWORKS
        for algorithm in ("ring", "intercube")
        for nbytes in (256, 1024)
    ]
    assert [point.buffer_kind for point in points if point.part == "kind"] == ["tcm", "hbm", "sram"]
    slots = [
        (point.network.sips, point.queue.slots) for point in points if point.part == "reference"
    ]
    assert slots == [(8, 4), (8, 8), (8, 32), (16, 4), (16, 16)]


@pytest.mark.slow
def test_a_point_has_its_own_queue_parameters_and_not_those_an_algorithm_overrides():
    content = yaml.safe_load(CCL)
    content["algorithms"]["ring"] |= {"buffer_kind": "sram", "n_slots": 2}
    point = next(
        point
        for point in plan_points(FILE.text, yaml.safe_dump(content), 1024)
        if point.part == "size"
    )
    assert parse_ccl(point.ccl, "").resolve("ring").buffer_kind == "tcm"
    assert point.queue.slots == 2


def test_a_largest_size_that_leaves_a_sweep_empty_is_refused():
    with pytest.raises(
        UsageError,
        match="--max-bytes 1023: must be from 1024",
    ):
        plan_points(FILE.text, CCL, 1023)
