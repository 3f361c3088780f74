"""The receive rings of several groups: every rank computes the same addresses, and no two rings
share a byte.
"""

from itertools import combinations, pairwise

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.ccl.config import CclConfig, parse_ccl
from runtime.ccl.ring_allocator import InstallPlans, RingAllocator
from runtime.core.config.config_file import default_file
from runtime.core.errors import ConfigError
from runtime.core.requests import QueuePair
from tests.support.topologies import variant

SIPS = 4
GROUPS = [members for count in range(1, SIPS + 1) for members in combinations(range(SIPS), count)]
TOPOLOGY = variant(
    system__sips__count=SIPS,
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)


def ccl(kind: str = "tcm", **defaults: int) -> CclConfig:
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["defaults"] |= {"buffer_kind": kind} | defaults
    return parse_ccl(yaml.safe_dump(content), "ccl.yaml")


def installed(
    rank: int, made: list[tuple[tuple[int, ...], str]], config: CclConfig
) -> list[tuple[str, QueuePair]]:
    """Every queue pair that a rank installs, with its table, after these groups were made."""
    allocator, found = RingAllocator(rank, TOPOLOGY, config, InstallPlans()), []
    for number, (sips, algorithm) in enumerate(made):
        for table in allocator.tables(f"group{number}", sips, [algorithm]).values():
            if rank in sips:
                found += [
                    (table.name, pair)
                    for pairs in table.plan.of_sip(rank).values()
                    for pair in pairs
                ]
    return found


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(GROUPS),
            st.sampled_from(["ring", "tree", "hierarchical", "point_to_point"]),
        ),
        min_size=1,
        max_size=6,
        unique=True,
    ),
    st.sampled_from(["tcm", "hbm", "sram"]),
)
def test_rings_of_all_tables_are_disjoint_and_peers_compute_their_addresses(
    made: list[tuple[tuple[int, ...], str]], kind: str
) -> None:
    config = ccl(kind)
    pairs = [pair for rank in range(SIPS) for pair in installed(rank, made, config)]
    rings = sorted(
        (pair.rx_base, pair.rx_base + pair.ring_bytes)
        for _, pair in pairs
        if pair.rx_base is not None
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(rings))
    # The name of a table is unique, so every ring that is sent to is a receive ring of that table.
    received = {(table, pair.rx_base) for table, pair in pairs}
    assert all((table, pair.tx_base) in received for table, pair in pairs)


def test_a_group_of_the_same_ranks_has_the_queues_of_the_first_one() -> None:
    allocator = RingAllocator(0, TOPOLOGY, ccl(), InstallPlans())
    first, second = (allocator.tables(name, (0, 2), ["ring"])["ring"] for name in ("one", "two"))
    assert first is second
    assert first.name == "one/ring"


def test_the_ranks_of_an_lp_share_a_plan_as_long_as_it_lies_at_the_same_place() -> None:
    plans, config = InstallPlans(), ccl()
    first, second = (RingAllocator(rank, TOPOLOGY, config, plans) for rank in (0, 2))
    ring = [each.tables("all", (0, 1, 2), ["ring"])["ring"].plan for each in (first, second)]
    assert ring[0] is ring[1]
    second.tables("pair", (1, 2), ["tree"])
    below = [each.tables("two", (0, 2), ["tree"])["tree"].plan for each in (first, second)]
    assert below[0].above_bytes < below[1].above_bytes


@pytest.mark.parametrize(
    ("kind", "defaults", "message"),
    [
        (
            "tcm",
            {"n_slots": 4096},
            (
                "2 receive rings a PE of 4096 slots of 4,096 bytes do not fit "
                "the 9,437,184 bytes of tcm:"
            ),
        ),
        (
            "sram",
            {"n_slots": 17, "slot_size": 1 << 19},
            (
                "2 receive rings a PE of 17 slots of 524,288 bytes do not fit "
                "the 33,554,432 bytes of sram, which 2 PEs share:"
            ),
        ),
    ],
)
def test_the_error_of_rings_that_do_not_fit_has_the_remedy(
    kind: str, defaults: dict[str, int], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        installed(0, [((0, 1), "ring")], ccl(kind, **defaults))
    advice = "use smaller n_slots or slot_size, or another buffer_kind"
    assert str(raised.value) == f"ccl.yaml: algorithms.ring: {message} {advice}"


def test_the_error_of_rings_that_do_not_fit_below_others_has_the_bytes_of_the_others() -> None:
    config = ccl("tcm", n_slots=1000)
    with pytest.raises(
        ConfigError,
        match=r"2 receive rings .* below 8,192,000 bytes a PE of other queues do not fit",
    ):
        installed(0, [((0, 1), "ring"), ((0, 1, 2), "ring")], config)
