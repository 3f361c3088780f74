"""An uncontended IPCQ transfer takes exactly the closed form.

The time is from the start in a DMA channel until the slot is usable by the receiver.

Positions: the router grid of a cube is 6 x 6 at a pitch of 2 mm; the HBM stack occupies r2c2, r2c3,
r3c2 and r3c3. PE 0 is at r0c0, the SRAM at r4c3, the ports at r0c2 (N), r5c2 (S), r2c0 (W) and
r2c5 (E).
"""

import pytest

from runtime.core.trace import OpRecord
from tests.support.closed_form import (
    CUBE_TO_IO,
    IO_TO_CUBE,
    PE_TO_ROUTER,
    ROUTER_TO_PE,
    ROUTER_TO_SRAM,
    SRAM_TO_ROUTER,
    TO_NEXT_CUBE,
    TO_NEXT_SIP,
    TO_XBAR,
    XBAR_TO_HBM,
    XBAR_TO_PE,
    Route,
    RouteTimes,
    mesh,
    ring_write_to_hbm_ps,
    route_times,
    through_switch,
)
from tests.support.joined import transfer, transfer_between_sips
from tests.support.topologies import variant_text

pytestmark = pytest.mark.fidelity

SLOT = 4096
SIZES = (SLOT, 1024, 1000, 264, 256, 16, 1)

ONE_PE_A_CORNER = {"cube__pe_layout__pe_per_corner": 1}
SIX_CUBES = variant_text(sip__cube_mesh={"w": 3, "h": 2}, **ONE_PE_A_CORNER)
ODD_NUMBERS = variant_text(
    sip__cube_mesh={"w": 3, "h": 2},
    ns_per_mm=0.0137,
    ucie={"overhead_ns": 7.3, "bw_gbs": 96.7},
    cube__noc__router_overhead_ns=0.77,
    cube__noc__link_bw_gbs=190.3,
    pe__dma__overhead_ns=1.9,
    pe__ipcq__overhead_ns=0.6,
    hbm__pc_bw_gbs=29.1,
    cube__hbm_ctrl__efficiency=0.7,
    cube__sram_to_router_bw_gbs=87.7,
    **ONE_PE_A_CORNER,
)
SLOW_TCM = variant_text(sip__cube_mesh={"w": 3, "h": 2}, pe__tcm__bw_gbs=33.3, **ONE_PE_A_CORNER)
TOPOLOGIES = {"default": SIX_CUBES, "odd numbers": ODD_NUMBERS, "slow tcm": SLOW_TCM}

ACROSS = (0, 0), (0, 3), PE_TO_ROUTER + mesh(10), mesh(3)
"""PE 3 is at r5c5, three hops from the SRAM."""
NEIGHBOUR = (0, 0), (1, 0), PE_TO_ROUTER + mesh(7) + TO_NEXT_CUBE + mesh(2), mesh(7)
"""r0c0 - r0c5 - r2c5, the crossing, r2c0 - r0c0; the SRAM is four rows and three columns away."""
DISTANT = (
    (0, 0),
    (5, 0),
    PE_TO_ROUTER
    + mesh(7)
    + TO_NEXT_CUBE
    + mesh(7)
    + TO_NEXT_CUBE
    + mesh(5)
    + TO_NEXT_CUBE
    + mesh(2),
    mesh(7),
)
"""Cubes 0, 1, 2 and 5.

In cube 1 from r2c0 around the stack to r2c5, in cube 2 to r5c2, in cube 5 from r0c2."""
PATHS = {"across a cube": ACROSS, "to the next cube": NEIGHBOUR, "to a distant cube": DISTANT}
SRAM_DETOUR = {"across a cube": mesh(7), "to the next cube": mesh(5), "to a distant cube": mesh(7)}
"""Route from the entry of the target cube to its SRAM: r0c0, r2c0 and r0c2 to r4c3.

From r0c2 around the stack."""
LAST_LEG = {"across a cube": mesh(10), "to the next cube": mesh(2), "to a distant cube": mesh(2)}
"""The last hops to the PE, which are not on the route to the SRAM."""

ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}} | ONE_PE_A_CORNER
OUT = PE_TO_ROUTER + mesh(7) + CUBE_TO_IO
"""r0c0 to r5c2 and out of the south side."""


def took_ps(arrival: OpRecord) -> int:
    return arrival.end_ps - arrival.start_ps


def ring_in_tcm_ps(form: RouteTimes, to_router: Route, nbytes: int, packet: int = 256) -> int:
    return form.ring_write_ps(
        to_router + ROUTER_TO_PE, nbytes, packet, "pe.tcm.bw_gbs"
    ) + form.announcement_ps(())


def ring_in_sram_ps(form: RouteTimes, to_router: Route, nbytes: int, back: Route) -> int:
    write_ps = form.ring_write_ps(
        to_router + ROUTER_TO_SRAM, nbytes, 256, "cube.sram_to_router_bw_gbs"
    )
    return write_ps + form.announcement_ps(SRAM_TO_ROUTER + back + ROUTER_TO_PE)


def ring_in_hbm_ps(form: RouteTimes, to_router: Route, nbytes: int) -> int:
    write_ps = ring_write_to_hbm_ps(form, to_router + TO_XBAR + XBAR_TO_HBM, nbytes, 256)
    return write_ps + form.announcement_ps(TO_XBAR + XBAR_TO_PE)


def test_a_slot_across_a_cube_takes_30_ns() -> None:
    # DMA 2 ns; 11 routers 1 ns each; 10 hops of 2 mm are 20 mm, 0.2 ns;
    # 4096 B / 256 GB/s = 16 ns; IPCQ 1 ns.
    assert took_ps(transfer((0, 0), (0, 6), SLOT)) == 2_000 + 11_000 + 200 + 16_000 + 1_000


def test_a_slot_to_the_next_cube_takes_62_ns() -> None:
    # DMA 2 ns; 8 + 3 routers 1 ns each; 2 UCIe ports 8 ns each; 9 hops of 2 mm, two wires of 2 mm
    # to the ports and a gap of 1 mm are 23 mm, 0.23 ns; 4096 B / 128 GB/s = 32 ns; IPCQ 1 ns.
    assert took_ps(transfer((0, 0), (1, 0), SLOT)) == 2_000 + 11_000 + 16_000 + 230 + 32_000 + 1_000


def test_a_slot_to_the_next_sip_takes_104_ns() -> None:
    # DMA 2 ns; 8 routers out and 8 in, 1 ns each; 6 UCIe ports (cube and IO chiplet out, two
    # between SIPs, IO chiplet and cube in) 8 ns each; 2 IO NoCs 2 ns each; 7 hops of 2 mm and 2 mm
    # to the port on either side, two gaps of 1 mm and 20 mm between the SIPs are 54 mm, 0.54 ns;
    # 4096 B / 128 GB/s = 32 ns; IPCQ 1 ns.
    assert (
        took_ps(transfer_between_sips((12, 0), SLOT))
        == 2_000 + 16_000 + 48_000 + 4_000 + 540 + 32_000 + 1_000
    )


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("path", PATHS)
def test_a_ring_in_tcm_is_written_in_the_closed_form(path: str, topology: str) -> None:
    source, target, way, _ = PATHS[path]
    text = TOPOLOGIES[topology]
    arrival = transfer(source, target, 1000, topology=text)
    assert took_ps(arrival) == ring_in_tcm_ps(route_times(text), way, 1000)


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_message_of_any_size_takes_the_closed_form(nbytes: int) -> None:
    source, target, way, _ = NEIGHBOUR
    arrival = transfer(source, target, nbytes, topology=ODD_NUMBERS)
    assert took_ps(arrival) == ring_in_tcm_ps(route_times(ODD_NUMBERS), way, nbytes)


@pytest.mark.parametrize("packet", [64, 100, 4096])
def test_the_packet_size_of_a_queue_enters_only_through_the_rounding_of_each_packet(
    packet: int,
) -> None:
    source, target, way, _ = NEIGHBOUR
    arrival = transfer(source, target, 1000, topology=ODD_NUMBERS, vc_chunk_size=packet)
    assert took_ps(arrival) == ring_in_tcm_ps(route_times(ODD_NUMBERS), way, 1000, packet)


@pytest.mark.parametrize("topology", ["default", "odd numbers"])
@pytest.mark.parametrize("path", PATHS)
def test_a_ring_in_sram_pays_the_routes_to_the_bank_and_of_the_announcement(
    path: str, topology: str
) -> None:
    source, target, way, back = PATHS[path]
    text = TOPOLOGIES[topology]
    to_bank = way[: len(way) - len(LAST_LEG[path])] + SRAM_DETOUR[path]
    arrival = transfer(source, target, 1000, topology=text, buffer_kind="sram")
    assert took_ps(arrival) == ring_in_sram_ps(route_times(text), to_bank, 1000, back)


@pytest.mark.parametrize("topology", ["default", "odd numbers"])
@pytest.mark.parametrize("path", PATHS)
def test_a_ring_in_hbm_pays_for_bursts_on_its_pseudo_channels(path: str, topology: str) -> None:
    source, target, way, _ = PATHS[path]
    text = TOPOLOGIES[topology]
    arrival = transfer(source, target, SLOT, topology=text, buffer_kind="hbm")
    assert took_ps(arrival) == ring_in_hbm_ps(route_times(text), way, SLOT)


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_message_of_any_size_reaches_hbm_in_the_closed_form(nbytes: int) -> None:
    source, target, way, _ = ACROSS
    arrival = transfer(source, target, nbytes, topology=SIX_CUBES, buffer_kind="hbm")
    assert took_ps(arrival) == ring_in_hbm_ps(route_times(SIX_CUBES), way, nbytes)


def test_at_64_kib_a_ring_in_sram_is_slower_than_one_in_hbm_and_that_slower_than_one_in_tcm() -> (
    None
):
    source, target, way, back = ACROSS
    nbytes, form = 1 << 16, route_times(SIX_CUBES)
    times_ps = [
        took_ps(
            transfer(source, target, nbytes, topology=SIX_CUBES, buffer_kind=kind, slot_size=nbytes)
        )
        for kind in ("tcm", "hbm", "sram")
    ]
    # The narrowest servers have 256, 204.8 and 128 GB/s.
    assert (
        times_ps
        == sorted(times_ps)
        == [
            ring_in_tcm_ps(form, way, nbytes),
            ring_in_hbm_ps(form, way, nbytes),
            ring_in_sram_ps(form, PE_TO_ROUTER + SRAM_DETOUR["across a cube"], nbytes, back),
        ]
    )


@pytest.mark.parametrize("nbytes", [SLOT, 1000])
@pytest.mark.parametrize("kind", ["tcm", "sram", "hbm"])
def test_a_ring_in_the_next_sip_is_written_in_the_closed_form(kind: str, nbytes: int) -> None:
    text = variant_text(**ONE_CUBE)
    arrival = transfer_between_sips((0, 0), nbytes, topology=text, buffer_kind=kind)
    way, form = OUT + TO_NEXT_SIP + IO_TO_CUBE, route_times(text)
    expected = {
        "tcm": ring_in_tcm_ps(form, way + mesh(7), nbytes),
        "sram": ring_in_sram_ps(form, way + mesh(2), nbytes, mesh(7)),
        "hbm": ring_in_hbm_ps(form, way + mesh(7), nbytes),
    }
    assert took_ps(arrival) == expected[kind]


def test_a_message_forwarded_by_a_sip_pays_two_crossings() -> None:
    text = variant_text(system__sips__topology="torus_2d", **ONE_CUBE)
    arrival = transfer_between_sips((0, 0), SLOT, sips=4, source=1, topology=text)
    assert took_ps(arrival) == ring_in_tcm_ps(
        route_times(text), OUT + TO_NEXT_SIP * 2 + IO_TO_CUBE + mesh(7), SLOT
    )


def test_a_message_through_the_switch_pays_its_overhead_and_a_second_wire() -> None:
    text = variant_text(system__sips__fabric="switch", system__sips__spacing_mm=33.3, **ONE_CUBE)
    arrival = transfer_between_sips((0, 0), SLOT, sips=3, topology=text)
    assert took_ps(arrival) == ring_in_tcm_ps(
        route_times(text), OUT + through_switch() + IO_TO_CUBE + mesh(7), SLOT
    )
