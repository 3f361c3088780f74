"""The overlap of a chain; what it computes is tested in tests/property."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from kernbench import DPPolicy, torch
from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from kernbench.studies.all_reduce import kernel_span
from tests.support.topologies import variant_text

dist = torch.distributed
ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}}
NBYTES, MESSAGE_BYTES = 1 << 19, 8192


def chain_ps(call: Callable[[torch.Tensor], None], ranks: int) -> int:
    """The kernels of a collective on one PE a rank."""

    def main(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        one_pe = DPPolicy(num_cubes=1, num_pes=1)
        call(torch.empty(NBYTES // 4, dtype=torch.float32, dp=one_pe))

    world = simulate(main, ranks, topology=variant_text(**ONE_CUBE), data=False)
    return kernel_span([kernel for _, kernel in world.of("pe_cpu.collective", "kernel ")])[0]


def _broadcast(x: torch.Tensor) -> None:
    dist.broadcast(x, 1)


def _reduce(x: torch.Tensor) -> None:
    dist.reduce(x, 1)


# The root of a reduce loads and stores all elements in its own slice, of 204.8 GB/s.
@pytest.mark.parametrize(("call", "passes"), [(_broadcast, 0), (_reduce, 2)])
def test_a_chain_pays_the_latency_of_a_position_once_and_every_byte_once(
    call: Callable[[torch.Tensor], None], passes: int
) -> None:
    # (p-1) alpha + (p-2) m/B + max(n/B, 2n/M), of Thakur et al. The first load, the last addition
    # and the last store of a message are less than a tenth.
    link = RingAllReduceTimes(
        TopologyFile.of(variant_text(**ONE_CUBE)), RingQueue(packet_bytes=2048)
    ).link
    bytes_ps = max(link.bytes_ps(NBYTES), Fraction(passes * NBYTES * 10000, 2048))
    for ranks in (2, 3):
        latency_ps = (ranks - 1) * link.alpha_ps + (ranks - 2) * link.bytes_ps(MESSAGE_BYTES)
        least_ps = float(latency_ps + bytes_ps)
        assert least_ps < chain_ps(call, ranks) < 1.1 * least_ps
