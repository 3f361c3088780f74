"""The closed forms of the all-reduce study against numbers computed by hand from docs/model.md."""

from fractions import Fraction

import pytest
import yaml

from kernbench.studies.milestone_1h_ccl.networks import NETWORKS, RingPaths, SipNetwork
from kernbench.studies.milestone_1h_ccl.points import plan_points, reference_variant
from kernbench.studies.milestone_1h_ccl.reference import ASTRA_SIM, explained
from kernbench.studies.milestone_1h_ccl.theory import AllReduceTheory
from kernbench.theory.alpha_beta import AlphaBeta, RingQueue
from kernbench.theory.topology_file import TopologyFile
from runtime.ccl.config import parse_ccl
from runtime.core.config_file import default_file, read_text
from runtime.core.errors import UsageError

FILE = TopologyFile.of(read_text(default_file("topology.yaml")))
CCL = read_text(default_file("ccl.yaml"))
# Worked examples of docs/model.md, without the 32 ns of their bytes, and 3 ns to issue the command.
TO_NEXT_SIP_PS = 103_540 - 32_000 + 3000
TO_NEXT_CUBE_PS = 62_230 - 32_000 + 3000
ONE_MORE_SIP_PS = 16_000 + 2000 + 200
"""Two UCIe ports, an IO NoC, 20 mm of wire."""
QUEUE = RingQueue(slots=4, slot_bytes=4096, packet_bytes=256, credit_bytes=16)


def theory(network: SipNetwork, w: int = 1, h: int = 1) -> AllReduceTheory:
    """Closed forms of the shipped file with W x H cubes a SIP: the IO chiplet is at an end cube."""
    sips = FILE["system.sips"] | network.section
    return AllReduceTheory(
        FILE.with_values({"system.sips": sips, "sip.cube_mesh": {"w": w, "h": h}}).text,
        network,
        QUEUE,
    )


def test_the_textbook_form_of_the_ring():
    # 14 steps of 500 ns and of 131072 B / 50 GB/s = 2621.44 ns.
    form = AlphaBeta(500_000, Fraction(50))
    assert form.ring_all_reduce_ps(8, 1 << 20) == 14 * (500_000 + 2_621_440)


def test_alpha_and_bandwidth_of_a_step_are_those_of_the_worked_example():
    link = theory(NETWORKS[0]).ring_link
    assert link.alpha_ps == TO_NEXT_SIP_PS
    assert link.gbs == 128


@pytest.mark.parametrize(
    ("network", "forwards"),
    [(NETWORKS[0], 0), (SipNetwork("torus_2d", 2, 2), 3), (SipNetwork("mesh_2d_no_wrap", 2, 2), 3)],
)
def test_the_ring_pays_for_every_sip_that_forwards(network: SipNetwork, forwards: int):
    # 6 steps of 64 B / 128 GB/s = 0.5 ns; of the 6 paths of a byte, every second one has a SIP in
    # between.
    expected_ps = 6 * (TO_NEXT_SIP_PS + 500) + forwards * ONE_MORE_SIP_PS
    assert theory(network).alpha_beta_ps("ring", 256) == expected_ps


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


def test_a_buffer_of_two_blocks_pays_every_alpha_twice():
    ring = theory(NETWORKS[0])
    block = 4 * QUEUE.ring_bytes
    one, two = ring.parts(block), ring.parts(2 * block)
    assert one.alpha_ps == 6 * TO_NEXT_SIP_PS
    assert one.moving_ps == 6 * QUEUE.ring_bytes * 1000 / 128
    assert (two.alpha_ps, two.moving_ps, two.total_ps) == (
        2 * one.alpha_ps,
        2 * one.moving_ps,
        2 * one.total_ps,
    )


def test_a_message_waits_for_credits_only_if_it_needs_slots_of_the_previous_message():
    # 200 ns more in every port make the round of a credit longer than a message of four slots.
    values = {
        "ucie.overhead_ns": 200,
        "sip.cube_mesh": {"w": 1, "h": 1},
        "system.sips": FILE["system.sips"] | {"count": 4},
    }
    ring = AllReduceTheory(FILE.with_values(values).text, NETWORKS[0], QUEUE)
    half, full = ring.parts(4 * 2 * 4096), ring.parts(4 * 4 * 4096)
    assert half.credit_ps == 0
    # A credit takes alpha - issue - DMA and 16 B, after a slot of 4096 B and its copy of 2 ns and
    # twice 8 ns. A message takes alpha, 16 KiB and the same copy; with an addition also issue 3 and
    # 32 vectors: 2 ns to fetch one, 4 + 1 cycles, 1 ns to store it, 31 more at the fetch port.
    late_ps = (ring.ring_link.alpha_ps - 5000 + 125) - 3 * 32_000
    assert full.credit_ps == 2 * late_ps + 3 * (late_ps - 73_000)


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


def test_the_ring_of_a_torus_is_forwarded_from_row_to_row_and_shares_no_link():
    paths = RingPaths.of(
        FILE.with_values(
            {"system.sips": FILE["system.sips"] | SipNetwork("torus_2d", 3, 3).section}
        ).text,
        9,
    )
    assert list(paths.forwarded()) == [(2, 0, 3), (5, 3, 6), (8, 6, 0)]
    assert paths.busiest == 1
    assert len(paths.links) == 9 * 4


def test_the_busiest_link_is_shared_by_the_most_paths():
    paths = RingPaths(links=((0, 1), (1, 0)), ring=((0, 1), (1, 0), (0, 1)))
    assert paths.busiest == 2


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
        match="--max-bytes 1023: the sizes of the sweep over kinds of queues start at 1024 bytes",
    ):
        plan_points(FILE.text, CCL, 1023)
