"""Each case of `probe`: measured time and closed form agree, and its route is as documented."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernbench.measure.transfers.cases import NAMES, ORIGIN, ProbeCase, ProbeCases
from kernbench.measure.transfers.measure import SWEEP_BYTES, ProbeRow, ProbeTransfer, measure
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.coordinates import PeCoordinates
from runtime.model.graph import ChipGraph
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology
from tests.support.closed_form import (
    CUBE_TO_IO,
    HOST_TO_IO,
    IO_TO_CUBE,
    IO_TO_HOST,
    PE_TO_ROUTER,
    ROUTER_TO_PE,
    TO_NEXT_SIP,
    TO_XBAR,
    XBAR_TO_HBM,
    XBAR_TO_ROUTER,
    mesh,
    route_times,
)
from tests.support.topologies import default_text, variant_text

ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}}
ONE_PE = {"cube__pe_layout__corners": ["SE"], "cube__pe_layout__pe_per_corner": 1}
FOUR_CUBES = {"sip__cube_mesh": {"w": 2, "h": 2}, "cube__pe_layout__pe_per_corner": 1}
ODD_NUMBERS = {
    "ns_per_mm": 0.0137,
    "hbm__pc_bw_gbs": 29.1,
    "xbar": {"overhead_ns": 1.7, "to_hbm_bw_gbs": 219.3},
    "cube__hbm_ctrl__overhead_ns": 0.4,
    "cube__hbm_ctrl__latency_ns": 31.3,
    "cube__hbm_ctrl__efficiency": 0.77,
    "cube__hbm_ctrl__switch_penalty_ns": 3.0,
    "pe__tcm__bw_gbs": 101.3,
    "ucie": {"overhead_ns": 7.3, "bw_gbs": 96.7},
    "sip__io_chiplet__edge": "W",
}
SIZES = (1, 16, 256, 1000, 4096, 4112, 10_000, 65_536)


def rows(
    text: str, sips: int = 2, *, sizes: tuple[int, ...] = (4096,), names: tuple[str, ...] = ()
) -> list[ProbeRow]:
    cases = ProbeCases(parse_topology(text, "topology.yaml", sips))
    chosen = [case for case in cases.cases if not names or case.name in names]
    return measure(
        cases,
        text,
        [
            ProbeTransfer(each, op, size)
            for each in chosen
            for op in each.directions
            for size in sizes
        ],
    )


def row(text: str, name: str, nbytes: int, sips: int = 1, operation: str = "") -> ProbeRow:
    found = rows(text, sips, sizes=(nbytes,), names=(name,))
    [one] = [each for each in found if operation in ("", each.transfer.direction)]
    return one


@pytest.mark.parametrize(
    ("text", "sips"),
    [
        (variant_text(**ONE_CUBE, **ONE_PE), 1),
        (variant_text(**ONE_CUBE), 3),
        (variant_text(**ONE_PE, sip__cube_mesh={"w": 2, "h": 3}), 2),
        (variant_text(**ONE_CUBE, **ONE_PE, system__sips__fabric="switch"), 3),
        (variant_text(**ONE_CUBE, **ONE_PE, system__sips__topology="mesh_2d_no_wrap"), 4),
        (variant_text(**FOUR_CUBES, **ODD_NUMBERS), 2),
        (variant_text(**FOUR_CUBES, packet_bytes=2048), 2),
    ],
    ids=["1 PE", "3 SIPs", "2x3 cubes", "switch", "mesh of SIPs", "odd numbers", "other packets"],
)
@pytest.mark.slow
def test_every_transfer_takes_its_closed_form_to_the_picosecond(text: str, sips: int) -> None:
    measured = rows(text, sips, sizes=SIZES)
    assert all(each.form.exact for each in measured)
    assert [each.measured_ps for each in measured] == [each.form.total_ps for each in measured]


@pytest.mark.slow
def test_on_four_sips_of_the_default_topology_every_case_exists_and_agrees() -> None:
    measured = rows(default_text(), 4)
    assert {each.transfer.case.name for each in measured} == set(NAMES)
    assert all(each.agrees for each in measured)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.data())
def test_the_closed_form_holds_for_random_numbers_and_sizes(data: st.DataObject) -> None:
    def bandwidth() -> float:
        return data.draw(st.integers(80, 4000)) / 10

    changes: dict[str, Any] = {
        "ucie__bw_gbs": bandwidth(),
        "cube__noc__link_bw_gbs": bandwidth(),
        "pe__to_router_bw_gbs": bandwidth(),
        "xbar__to_hbm_bw_gbs": bandwidth(),
        "pe__tcm__bw_gbs": bandwidth(),
        "hbm__pc_bw_gbs": data.draw(st.integers(1, 64)),
        "sip__io_chiplet__pcie_ep__bw_gbs": bandwidth(),
        "packet_bytes": 2048 * data.draw(st.integers(1, 4)),
    }
    text = variant_text(**FOUR_CUBES, **changes)
    measured = rows(
        text,
        2,
        sizes=tuple(
            data.draw(st.lists(st.integers(1, 30_000), min_size=1, max_size=4, unique=True))
        ),
    )
    assert [each.measured_ps for each in measured] == [each.form.total_ps for each in measured]


@pytest.mark.parametrize("nbytes", [1000, 4096, 10_000])
def test_the_host_cases_have_the_routes_written_out_by_hand(nbytes: int) -> None:
    text = variant_text(**ONE_CUBE, **ONE_PE)
    form = route_times(text)
    # PE 0 stands in the south-east corner, on r5c5; the port to the IO chiplet hangs on r5c2.
    there = HOST_TO_IO + IO_TO_CUBE + mesh(3) + TO_XBAR + XBAR_TO_HBM
    back = TO_XBAR + XBAR_TO_ROUTER + mesh(3) + CUBE_TO_IO + IO_TO_HOST
    assert row(text, "h2d-write", nbytes).form.total_ps == form.bulk_ps(
        there, nbytes
    ) + form.control_ps(back)
    assert row(text, "d2h-read", nbytes).form.total_ps == form.control_ps(there) + form.bulk_ps(
        back, nbytes
    )


def test_the_route_to_another_sip_is_the_one_written_out_by_hand() -> None:
    text, nbytes = variant_text(**ONE_CUBE, **ONE_PE), 4096
    form = route_times(text)
    between = mesh(3) + CUBE_TO_IO + TO_NEXT_SIP + IO_TO_CUBE + mesh(3)
    there = PE_TO_ROUTER + between + TO_XBAR + XBAR_TO_HBM
    back = TO_XBAR + XBAR_TO_ROUTER + between + ROUTER_TO_PE
    expected_ps = form.commands.write_start_ps + form.bulk_ps(there, nbytes) + form.control_ps(back)
    assert row(text, "dma-sip-1", nbytes, sips=2, operation="write").form.total_ps == expected_ps


def test_a_small_last_packet_drains_at_the_server_that_is_slowest_for_it() -> None:
    # Full packets queue at UCIe: 4096 B / 128 GB/s = 32 ns. The last 16 B pass it in 0.125 ns, but
    # their one pseudo channel of 25.6 GB/s takes 0.625 ns.
    one = row(variant_text(**FOUR_CUBES), "dma-cube-best", 3 * 4096 + 16, operation="write")
    [data] = [leg for leg in one.form.legs if leg.name == "data"]
    assert data.drain_ps == 3 * 32_000 + 625
    assert one.agrees


@pytest.mark.parametrize("nbytes", [1024, 2048, 10_000])
def test_packets_that_leave_channels_idle_have_a_lower_bound_instead_of_a_closed_form(
    nbytes: int,
) -> None:
    text = variant_text(**ONE_CUBE, **ONE_PE, packet_bytes=1024)
    one = row(text, "dma-own", nbytes, operation="read")
    assert one.form.exact == (nbytes <= 1024)
    assert one.agrees
    assert one.measured_ps >= one.form.total_ps


def test_best_and_worst_are_the_ends_of_all_simulated_transfers() -> None:
    text = variant_text(**FOUR_CUBES)
    cases = ProbeCases(parse_topology(text, "topology.yaml", 1))
    by_name = {case.name: case for case in cases.cases}

    def times_ps(of: dict[PeCoordinates, str]) -> list[int]:
        transfers = [
            ProbeTransfer(ProbeCase(name, "HBM", target, ("read",)), "read", 4096)
            for target, name in of.items()
        ]
        return [each.measured_ps for each in measure(cases, text, transfers)]

    def extremes_ps(*names: str) -> list[int]:
        return [
            each.measured_ps
            for each in measure(
                cases, text, [ProbeTransfer(by_name[name], "read", 4096) for name in names]
            )
        ]

    all_other_cubes_ps = times_ps(
        {PeCoordinates(0, cube, pe): "dma-cube-best" for cube in range(1, 4) for pe in range(4)}
    )
    assert extremes_ps("dma-cube-best", "dma-cube-worst") == [
        min(all_other_cubes_ps),
        max(all_other_cubes_ps),
    ]
    all_other_slices_ps = times_ps({PeCoordinates(0, 0, pe): "dma-near" for pe in range(1, 4)})
    assert extremes_ps("dma-near", "dma-far") == [
        min(all_other_slices_ps),
        max(all_other_slices_ps),
    ]


@pytest.mark.parametrize("fabric", ["direct", "switch"])
def test_the_hops_between_two_sips_add_up_to_the_latency_of_their_link(fabric: str) -> None:
    topology = parse_topology(
        variant_text(**ONE_CUBE, system__sips__fabric=fabric), "topology.yaml", 2
    )
    hops = ProbeCases(topology).access.hops(RouteEnd("io_noc", 0), RouteEnd("io_noc", 1))
    graph = ChipGraph(topology)
    noc_ps = graph.nodes[graph.io_noc].overhead_ps
    assert sum(hop.latency_ps for hop in hops) == SipFabric(topology).link(0, 1).latency_ps + noc_ps
    assert sum(hop.link is not None for hop in hops) == (1 if fabric == "direct" else 2)


@pytest.mark.slow
def test_a_sweep_rises_towards_the_bottleneck_and_never_passes_it() -> None:
    text = variant_text(**FOUR_CUBES)
    for name in ("dma-own", "dma-sram", "dma-cube-worst", "dma-sip-1"):
        reads = [
            each
            for each in rows(text, 2, sizes=SWEEP_BYTES, names=(name,))
            if each.transfer.direction == "read"
        ]
        assert [each.transfer.nbytes for each in reads] == list(SWEEP_BYTES)
        rates = [each.gbs for each in reads]
        assert rates == sorted(rates)
        assert all(each.utilisation < 1 for each in reads)
        assert reads[-1].utilisation > 0.9


def test_a_topology_without_other_pes_cubes_or_sips_leaves_cases_out_with_the_reason() -> None:
    cases = ProbeCases(parse_topology(variant_text(**ONE_CUBE, **ONE_PE), "topology.yaml", 1))
    assert cases.left_out["dma-far-tcm"] == "a cube has one PE"
    assert cases.left_out["dma-cube-worst"] == "a SIP has one cube"
    assert cases.left_out["dma-sip-1"] == "there is one SIP"
    assert {case.name for case in cases.cases} | set(cases.left_out) == set(NAMES)


def test_cases_start_at_the_first_pe_and_end_at_the_memories_which_they_name() -> None:
    cases = {
        case.name: case
        for case in ProbeCases(parse_topology(variant_text(**FOUR_CUBES), "topology.yaml", 4)).cases
    }
    assert cases["dma-own"].target == ORIGIN
    assert cases["dma-sram"].memory == "cube0 SRAM"
    assert cases["dma-cube-worst"].memory == "cube3.pe3 HBM"
    assert [cases[f"dma-sip-{hops}"].memory for hops in (1, 2)] == [
        "sip1.cube0.pe0 HBM",
        "sip2.cube0.pe0 HBM",
    ]
