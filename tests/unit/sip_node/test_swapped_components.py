import pytest

from runtime import tl, torch
from runtime.errors import ConfigError
from sip_node.components.packet import Packet
from sip_node.components.pe_math import PeMath
from sip_node.components.storage import HbmController
from tests.support.topologies import variant_text
from tests.support.world import simulate

ONE_PE = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__corners": ["NW"], "cube__pe_layout__pe_per_corner": 1}


class SlowHbm(HbmController):
    """An HBM controller that thinks for a microsecond before it serves anything."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        super().accept(packet, tail_ps + 1_000_000)


class TwiceAsFast(PeMath):
    """A vector engine that needs half the cycles."""

    def compute_ps(self, numel: int) -> int:
        return super().compute_ps(numel) // 2


def negate(x: tl.Pointer) -> None:
    tl.store(x, -tl.load(x, 1024))


def program(_rank: int) -> None:
    torch.zeros(4)


def test_a_class_named_by_its_dotted_path_takes_the_place_of_a_component() -> None:
    plain = simulate(program, 1, topology=variant_text(**ONE_PE))
    slow = simulate(program, 1, topology=variant_text(**ONE_PE, impl={"hbm_ctrl": f"{__name__}:SlowHbm"}))
    # 16 bytes take one channel 625 ps from their head on; their tail, 250 ps behind the head at PCIe's 64 GB/s, is what counts
    # when it comes a microsecond late.
    assert slow.time_ps == plain.time_ps - 625 + 250 + 1_000_000


def test_an_engine_of_every_pe_is_replaced_in_the_same_way() -> None:
    def kernel_ps(**impl: str) -> int:
        handle = simulate(
            lambda _rank: torch.ahbm.synchronize() or torch.launch("negate", negate, torch.ones(1024)),
            1,
            topology=variant_text(**ONE_PE, impl=impl),
        ).returned[0]
        return handle.pe_exec_ps

    # 4 cycles of pipeline and 1024 / 128 lanes at 1 GHz are 12 ns; the other engine takes 6.
    assert kernel_ps() - kernel_ps(pe_math=f"{__name__}:TwiceAsFast") == 6_000


def test_a_class_that_does_not_exist_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"impl\.hbm_ctrl: 'no\.such:Thing' cannot be imported"):
        simulate(program, 1, topology=variant_text(**ONE_PE, impl={"hbm_ctrl": "no.such:Thing"}))
