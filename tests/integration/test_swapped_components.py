from dataclasses import replace

import numpy as np
import pytest

from runtime import tl, torch
from runtime.core.errors import ConfigError
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.language.chains.passes import Pass
from runtime.language.gemm import Gemm
from runtime.language.value import Value
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.tiles import Tile
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.completion import Completion
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.storage import HbmController
from sip_node.chip.pe.compute.gemm import PeGemm
from sip_node.chip.pe.compute.math import PeMath
from sip_node.chip.pe.compute.operand_tiles import Blocks
from sip_node.chip.pe.compute.scheduler import PeScheduler
from sip_node.chip.pe.tcm import PeTcm
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.registry import CLOCKED, LINKS, components
from sip_node.pdes.engine import Engine
from tests.support.joined import transfer_between_sips
from tests.support.products import Product, measure
from tests.support.topologies import small, variant_text
from tests.support.world import simulate

ONE_PE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__corners": ["NW"],
    "cube__pe_layout__pe_per_corner": 1,
}


class SlowHbm(HbmController):
    """An HBM controller that serves every access a microsecond late."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        super().accept(packet, tail_ps + 1_000_000)


class TenthOfTheRate(Server):
    """A link with a tenth of the bandwidth in the file."""

    def __init__(self, name: str, bw_gbs: float) -> None:
        super().__init__(name, bw_gbs / 10)


class TwiceAsFast(PeMath):
    """A vector engine that needs half the cycles."""

    def cycles(self, step: Pass, vectors: int) -> int:
        return super().cycles(step, vectors) // 2


class HalfTheCycles(PeGemm):
    """A matrix engine that needs half the cycles."""

    def step_ps(self, tile: Tile) -> int:
        return super().step_ps(tile) // 2


class Forgetful(PeScheduler):
    """A scheduler that omits epilogues."""

    def submit(self, gemm: Gemm, target: Value | None, blocks: Blocks) -> Completion[None]:
        return super().submit(replace(gemm, bias=None, activation=None), target, blocks)


class NarrowTcm(PeTcm):
    """A TCM whose port has a tenth of the bandwidth."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        super().__init__(chip, node)
        self.server = TenthOfTheRate("narrow", chip.topology.pe.tcm.bw_gbs)
        self.reserve = self.server.reserve


def exponentials(x: tl.Pointer) -> None:
    tl.store(x, tl.exp(tl.load(x, 1024)))


def program(_rank: int) -> None:
    torch.from_numpy(np.zeros(4, np.float32))


def test_a_class_named_by_its_dotted_path_replaces_a_component() -> None:
    plain = simulate(program, 1, topology=variant_text(**ONE_PE))
    slow = simulate(
        program, 1, topology=variant_text(**ONE_PE, impl={"hbm_ctrl": f"{__name__}:SlowHbm"})
    )
    # A channel serves 16 bytes in 625 ps from their head on. The tail follows 250 ps after the
    # head at 64 GB/s of PCIe; a microsecond late, it determines the end.
    assert slow.time_ps == plain.time_ps - 625 + 250 + 1_000_000


def test_an_engine_of_every_pe_is_replaced_in_the_same_way() -> None:
    def kernel_ps(**impl: str) -> int:
        handle = simulate(
            lambda _rank: (
                torch.ahbm.synchronize() or torch.launch("exp", exponentials, torch.ones(1024))
            ),
            1,
            topology=variant_text(**ONE_PE, impl=impl),
        ).returned[0]
        return handle.pe_exec_ps

    # 4 cycles of pipeline and 8 for each of 1024 / 128 vectors at 1 GHz are 68 ns; the other engine
    # takes 34.
    assert kernel_ps() - kernel_ps(pe_math=f"{__name__}:TwiceAsFast") == 34_000


def test_the_matrix_engine_of_every_pe_is_replaced() -> None:
    one_step = Product(32, 64, 32)
    swapped = measure(one_step, impl={"pe_gemm": f"{__name__}:HalfTheCycles"})
    assert measure(one_step).kernel_ps - swapped.kernel_ps == 8_000


def test_the_scheduler_of_every_pe_is_replaced() -> None:
    product = Product(32, 64, 32, activation="relu")
    plain, swapped = (
        measure(product, data=True),
        measure(product, data=True, impl={"pe_scheduler": f"{__name__}:Forgetful"}),
    )
    # 4 cycles of pipeline and 1024 / 128 lanes at 1 GHz.
    assert plain.kernel_ps - swapped.kernel_ps == 12_000
    assert plain.results[0].min() == 0 > swapped.results[0].min()


def test_a_class_that_does_not_exist_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"impl\.hbm_ctrl: 'no\.such:Thing' cannot be imported"):
        simulate(program, 1, topology=variant_text(**ONE_PE, impl={"hbm_ctrl": "no.such:Thing"}))


def write_to_the_next_router(_rank: int) -> None:
    """PE 0 writes 16 packets of 4 KiB to the TCM of PE 1."""
    rank = running_rank()
    request = PeDmaMsg(0, 0, "write", rank.addresses.pe_tcm_addr(0, 0, 1, 0), 16 * 4096)
    rank.device.wait(rank.device.submit([request], "a write"))


def write_ps(**impl: str) -> int:
    two_pes = variant_text(**ONE_PE | {"cube__pe_layout__pe_per_corner": 2}, impl=impl)
    [(_, record)] = simulate(write_to_the_next_router, 1, topology=two_pes, data=False).of("pe_dma")
    return record.end_ps - record.start_ps


def test_the_tcm_of_every_pe_is_replaced_too() -> None:
    # 64 KiB at the 256 GB/s of the mesh, or at a tenth of the TCM's 512 GB/s.
    assert (
        write_ps(pe_tcm=f"{__name__}:NarrowTcm") - write_ps()
        == 65536 * 10_000 // 512 - 65536 * 1000 // 256
    )


@pytest.mark.parametrize("kind", CLOCKED)
def test_links_of_clocked_routers_have_no_other_class(kind: str) -> None:
    clocked = small(noc__flow_control="credits", impl={kind: f"{__name__}:TenthOfTheRate"})
    with pytest.raises(ConfigError, match=rf"impl\.{kind}: .* replaces links with calendars"):
        components(clocked)


@pytest.mark.parametrize("kind", [kind for kind in LINKS if kind != "switch"])
def test_the_class_named_for_a_kind_serves_all_links_that_leave_it_and_no_others(kind: str) -> None:
    graph = ChipGraph(small(impl={kind: f"{__name__}:TenthOfTheRate"}))
    bounds, links = SendBounds({}, CommandBounds(), answers=False), components(graph.topology).links
    fabric = Fabric(Engine(), graph, ChipRoutes(graph), 0, bounds, links)
    classes = {
        (graph.nodes[link.source].kind, type(server))
        for link, server in zip(graph.links, fabric.servers, strict=True)
    }
    assert {source for source, served in classes if served is TenthOfTheRate} == {kind}
    assert kind not in {source for source, served in classes if served is Server}


@pytest.mark.parametrize("fabric", ["direct", "switch"])
def test_the_ports_to_other_sips_are_of_the_class_named_for_ucie(fabric: str) -> None:
    topology = small(system__sips__fabric=fabric, impl={"ucie": f"{__name__}:TenthOfTheRate"})
    chip = Chip(chip_spec(topology, data=False), 0, Engine(), OpLog(None))
    assert {type(port) for port in chip.boundary.ports} == {TenthOfTheRate}


def test_packets_that_meet_in_the_switch_are_served_by_the_class_named_for_it() -> None:
    def transfer_ps(**impl: str) -> int:
        text = variant_text(**ONE_PE, system__sips__fabric="switch", impl=impl)
        arrival = transfer_between_sips((0, 0), 4096, topology=text)
        return arrival.end_ps - arrival.start_ps

    # 16 packets of 256 B back to back at 12.8 instead of 128 GB/s; the head of the first is as
    # early as before.
    assert transfer_ps(switch=f"{__name__}:TenthOfTheRate") - transfer_ps() == 16 * (20_000 - 2_000)


@pytest.mark.parametrize(
    ("kind", "name", "problem"),
    [
        ("router", "rooter", "'rooter' is not known; did you mean 'router'?"),
        (
            "router",
            f"{__name__}:SlowHbm",
            f"'{__name__}:SlowHbm' does not derive from sip_node.chip.fabric.server:Server",
        ),
        (
            "switch",
            f"{__name__}:ONE_PE",
            f"'{__name__}:ONE_PE' does not derive from sip_node.chip.fabric.server:Server",
        ),
        (
            "pe",
            f"{__name__}:SlowHbm",
            f"'{__name__}:SlowHbm' does not derive from sip_node.chip.pe.pe:Pe",
        ),
        (
            "sram",
            f"{__name__}:ONE_PE",
            f"'{__name__}:ONE_PE' cannot receive packets: it has no accept(packet, tail_ps)",
        ),
    ],
)
def test_a_class_that_is_no_such_component_is_refused_before_the_run(
    kind: str, name: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        simulate(
            program,
            2,
            topology=variant_text(**ONE_PE, system__sips__fabric="switch", impl={kind: name}),
        )
    assert str(raised.value) == f"topology: impl.{kind}: {problem}"
