"""Parts of the machine by name: which parts and keys an override sets, and every error."""

from typing import Any

import pytest

from runtime.core.config.section import config_hash
from runtime.core.errors import ConfigError
from runtime.model.graph import ChipGraph
from runtime.model.parts.overrides import value_of_part
from runtime.model.parts.part_keys import UnknownPartKeyError
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology, parse_topology
from tests.support.topologies import SOURCE, variant, variant_text

Override = dict[str, dict[str, Any]]


def machine(overrides: Override, **changes: Any) -> Topology:
    return variant(overrides=overrides, **changes)


def problem(overrides: Override, **changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_topology(variant_text(overrides=overrides, **changes), SOURCE)
    return str(raised.value).removeprefix(f"{SOURCE}: overrides.")


def gbs(topology: Topology, sip: int = 0) -> dict[str, float]:
    """The links of a SIP whose bandwidth is not that of the file, by name."""
    plain, own = ChipGraph(variant()), ChipGraph(topology, sip)
    pairs = zip(own.link_names, own.links, plain.links, strict=True)
    return {name: link.bw_gbs or 0 for name, link, same in pairs if link.bw_gbs != same.bw_gbs}


def test_a_ucie_port_has_a_bandwidth_in_both_directions_of_its_link() -> None:
    slow = machine({"sip0.cube6.ucie.W": {"bw_gbs": 16}})
    assert gbs(slow) == {
        "cube5.ucie.E->cube6.ucie.W": 16,
        "cube6.ucie.W->cube5.ucie.E": 16,
    }
    assert gbs(slow, sip=1) == {}


def test_a_link_has_a_bandwidth_in_one_direction() -> None:
    slow = machine({"cube2.router.r0c0->cube2.router.r0c1": {"bw_gbs": 9}})
    assert gbs(slow) == gbs(slow, 1) == {"cube2.router.r0c0->cube2.router.r0c1": 9}


def test_a_link_between_two_ports_of_their_own_has_the_lesser_bandwidth() -> None:
    two = machine({"cube5.ucie.E": {"bw_gbs": 20}, "cube6.ucie.W": {"bw_gbs": 30}})
    assert set(gbs(two).values()) == {20}


def test_a_port_may_be_faster_than_the_others() -> None:
    assert set(gbs(machine({"cube5.ucie.E": {"bw_gbs": 500}})).values()) == {500}


def test_the_clock_of_a_pe_is_that_of_both_engines() -> None:
    graph = ChipGraph(machine({"cube3.pe*": {"clock_ghz": 1.2}}))
    own = graph.topology_of(graph.pe(3, 7)).pe
    assert (own.gemm.clock_ghz, own.math.clock_ghz) == (1.2, 1.2)
    assert graph.topology_of(graph.pe(2, 7)) is graph.topology


def test_equal_parts_share_their_keys() -> None:
    graph = ChipGraph(machine({"cube3.pe*": {"clock_ghz": 1.2}}))
    assert graph.topology_of(graph.pe(3, 0)) is graph.topology_of(graph.pe(3, 1))


def test_the_smaller_part_counts_in_any_order() -> None:
    values: list[tuple[str, float]] = [("sip0", 0.5), ("cube3", 0.7), ("cube3.pe1", 0.9)]
    for order in (values, values[::-1]):
        graph = ChipGraph(machine({name: {"clock_ghz": ghz} for name, ghz in order}))
        clocks = [
            graph.topology_of(graph.pe(*pe)).pe.gemm.clock_ghz for pe in ((2, 1), (3, 0), (3, 1))
        ]
        assert clocks == [0.5, 0.7, 0.9]


def test_of_equally_large_parts_the_name_with_fewer_stars_counts() -> None:
    graph = ChipGraph(
        machine({"cube*.pe1": {"clock_ghz": 0.5}, "sip0.cube3.pe1": {"clock_ghz": 2}})
    )
    assert graph.topology_of(graph.pe(3, 1)).pe.gemm.clock_ghz == 2


def test_two_equally_near_values_are_an_error() -> None:
    text = problem({"cube3.pe*": {"clock_ghz": 2}, "cube*.pe1": {"clock_ghz": 3}})
    assert text.startswith("cube3.pe*.pe.gemm.clock_ghz: 2 for sip0.cube3.pe1, 3 by 'cube*.pe1'")


def test_an_engine_has_the_name_of_the_reports() -> None:
    graph = ChipGraph(machine({"cube0.pe0.pe_dma": {"overhead_ns": 9}}))
    own = graph.topology_of(graph.pe(0, 0)).pe
    assert (own.dma.overhead_ns, own.mmu.overhead_ns) == (9, 1)


def test_a_port_to_another_sip_has_the_name_of_the_reports() -> None:
    sips = SipFabric(machine({"sip0.ucie.sip1": {"bw_gbs": 5, "overhead_ns": 3}}))
    assert [link.bw_gbs for link in sips.links] == [5, 5]
    # Two ports of 8 ns and 0.2 ns of wire, of which one port takes 3 ns.
    assert [link.latency_ps for link in sips.links] == [11_200, 11_200]


def test_the_lookahead_is_that_of_the_fastest_link() -> None:
    ring = machine({"sip0.ucie.sip1": {"overhead_ns": 3}}, system__sips__count=3)
    # The IO NoC takes 2 ns.
    assert SipFabric(ring).least_entry_ps == 11_200 + 2_000


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"cube6.ucie.X": {"bw_gbs": 1}}, "cube6.ucie.X: no part of the machine; did you mean"),
        ({"sip5.cube0": {}}, "sip5.cube0: no part of the machine; did you mean 'sip1'?"),
        ({"cube99*": {"efficiency": 1}}, "cube99*: no part of the machine; did you mean 'cube"),
        ({"cube3.pe1": {"clok_ghz": 1}}, "cube3.pe1.clok_ghz: unknown key; did you mean 'clock"),
        ({"cube3.pe1": {"clock_ghz": -3}}, "cube3.pe1.clock_ghz: should be greater than or equal"),
        ({"cube3.pe1": {"clock_ghz": "a"}}, "cube3.pe1.clock_ghz: should be a valid number, got"),
        ({"cube3.pe1": {"down": 3}}, "cube3.pe1.down: should be true or false, got 3"),
        ({"cube3.pe1": {"tcm_mb": 3}}, "cube3.pe1.tcm_mb: pe.tcm_mb is that of all parts of the"),
        ({"cube3.pe1": {"cycles.add": 0.5}}, "cube3.pe1.cycles.add: should be a valid integer"),
        ({"cube3": {"bw_gbs": 3}}, "cube3.bw_gbs: the end of 3 keys: pe.tcm.bw_gbs, pe.fetch_st"),
        ({"cube3": 3}, "cube3: should be a mapping of keys, got 3"),
        ({"cube0.pe0->cube0.router.r0c0": {"w": 1}}, "cube0.pe0->cube0.router.r0c0.w: unknown key"),
        ({"io": {"down": True}}, "io.down: rank 0 and its collectives need sip0.io; its links can"),
        ({"sip1": {"down": True}}, "sip1.down: rank 1 and its collectives need sip1; its links"),
        ({"cube0.m_cpu": {"down": True}}, "cube0.m_cpu.down: sip0.cube0.m_cpu cannot be down"),
        ({"cube0.pe0.pe_gemm": {"down": True}}, "cube0.pe0.pe_gemm.down: unknown key"),
    ],
)
def test_an_error_names_the_part_the_key_and_the_nearest(overrides: Override, text: str) -> None:
    assert problem(overrides).startswith(text)


def test_the_timings_of_a_slice_keep_the_rules_of_the_file() -> None:
    text = problem({"cube0.pe0.hbm_ctrl": {"t_refi_ns": 100}})
    assert "sip0.cube0.pe0.hbm_ctrl: hbm.banks.t_refi_ns: 100.0 ns are no more than" in text


def test_a_crossing_that_takes_no_time_is_an_error() -> None:
    ports: Override = {"ucie.sip1": {"overhead_ns": 0}, "ucie.sip0": {"overhead_ns": 0}}
    noc: Override = {"io.io_noc": {"overhead_ns": 0}}
    text = problem(ports | noc, system__sips__spacing_mm=0)
    assert "the crossing from sip0 to sip1 takes 0 ps" in text


def test_a_uniform_machine_has_the_hash_of_a_file_without_overrides() -> None:
    assert config_hash(machine({})) == config_hash(variant())
    slow, written = ({"cube3": {"efficiency": value}} for value in (1, 1.0))
    assert config_hash(machine(slow)) == config_hash(machine(written)) != config_hash(variant())


def test_the_present_value_of_a_part_is_its_own_or_that_of_the_file() -> None:
    slow = machine({"sip0.cube6.ucie.W": {"bw_gbs": 16}})
    assert value_of_part(slow, "sip0.cube6.ucie.W", "bw_gbs") == 16
    assert value_of_part(slow, "sip0.cube5.ucie.E->cube6.ucie.W", "bw_gbs") == 16
    assert value_of_part(slow, "sip1.cube6.ucie.W", "bw_gbs") == 128
    with pytest.raises(UnknownPartKeyError, match="no part of the machine; did you mean"):
        value_of_part(slow, "cube6.ucie.Q", "bw_gbs")
