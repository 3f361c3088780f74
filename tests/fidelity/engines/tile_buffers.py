"""Group j: products whose tiles wait for the memory, by the number of tile buffers."""

from collections.abc import Iterator

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.engines.gemm_runs import GemmCase, measure
from kernbench.oracle.theory.engines.gemm import GemmNumbers, GemmShape
from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.language.context import PendingResult
from runtime.language.value import Pointer
from tests.fidelity.theory.tile_buffers import TileBufferTimes

BUFFERS = (1, 2, 3, 4)
STEPS = 26
"""No multiple of a number of buffers but 1 and 2: the last round is a partial one."""
TILES = 4
LATENCY_NS = 2000.0
CROSSBAR_NS = 100.0
"""So slow that a write takes longer than a step."""


def buffers(file: TopologyFile) -> list[Check]:
    """All checks; none where a packet leaves channels of a slice idle."""
    if file["packet_bytes"] % (file["hbm.num_pcs"] * file["hbm.burst_bytes"]):
        return []
    file = _tiles_of_a_packet(file)
    return [*_streamed(file), _written(file), _near_behind_far(file)]


def _tiles_of_a_packet(file: TopologyFile) -> TopologyFile:
    """Operand tiles of one packet each, in float16; the engine takes them faster than they come."""
    side = 32
    depth = file["packet_bytes"] // (2 * side)
    slice_gbs = file["hbm.num_pcs"] * file["hbm.pc_bw_gbs"]
    return file.with_values(
        {
            "pe.gemm.model": "macs",
            "pe.gemm.macs_per_cycle": side * side * depth,
            "pe.fetch_store.bw_gbs": max(file["pe.fetch_store.bw_gbs"], 2.0 * slice_gbs),
            "pe.tile": {"m": side, "k": depth, "n": side},
            "pe.dma.channels": 4 * max(BUFFERS),
            "pe.dma.outstanding": 4 * max(BUFFERS),
        }
    )


def _streamed(file: TopologyFile) -> Iterator[Check]:
    m, k, n = GemmNumbers.of(file).tile
    case = GemmCase(GemmShape(m, STEPS * k, n), to_memory=False)
    for count in BUFFERS:
        slow = file.with_values(
            {"pe.scheduler.tile_buffers": count, "cube.hbm_ctrl.latency_ns": LATENCY_NS}
        )
        yield Check(
            id=f"j.buffers.{count}",
            text=f"{STEPS} steps streamed at an HBM latency of {LATENCY_NS:g} ns, tile buffers: "
            f"{count}",
            formula="a load and a fetch for each round of b steps",
            expected=TileBufferTimes(slow).streamed_ps(STEPS),
            measured=measure(slow, case).span_ps,
            unit="ps",
        )


def _written(file: TopologyFile) -> Check:
    m, k, n = GemmNumbers.of(file).tile
    file = file.with_values({"pe.scheduler.tile_buffers": 1, "xbar.overhead_ns": CROSSBAR_NS})
    case = GemmCase(GemmShape(TILES * m, k, n), staging="load_load")
    return Check(
        id="j.buffers.result",
        text=f"{TILES} output tiles of a step each to memory, one buffer for the result",
        formula="a store and a write for each tile",
        expected=TileBufferTimes(file).written_ps(TILES),
        measured=measure(file, case).compute_span_ps,
        unit="ps",
    )


def _near_behind_far(file: TopologyFile) -> Check:
    """A product of a step from the next cube, then one from the own slice, whose tiles come first.

    Steps pass the fetch port in their order.
    """
    file = file.with_values({"sip.cube_mesh": {"w": 2, "h": 1}, "pe.scheduler.tile_buffers": 2})
    m, k, n = GemmNumbers.of(file).tile
    words = m * k + k * n

    def kernel(x: Pointer) -> None:
        if tl.program_id(1) == 0:
            far, near = (_product(x + start, (m, k, n)) for start in (words, 0))
            tl.wait(far)
            tl.wait(near)

    def program(_rank: int) -> None:
        two = torch.DPPolicy(cube="row_wise", num_cubes=2, num_pes=1)
        torch.launch("tiles", kernel, torch.empty(2, words, dtype=torch.float16, dp=two))
        torch.ahbm.synchronize()

    world = simulate(program, 1, topology=file.text, data=False)
    first_ps = min(record.start_ps for _, record in world.of("pe_dma"))
    fetched_ps = min(record.start_ps for _, record in world.of("pe_fetch_store", "fetch"))
    return Check(
        id="j.buffers.order",
        text="a step from the next cube, then one from the own slice: until the first fetch",
        formula="two tiles from the next cube",
        expected=MemoryAccess(file).dma_ps((0, 0), (1, 0), 2 * file["packet_bytes"]),
        measured=fetched_ps - first_ps,
        unit="ps",
    )


def _product(x: Pointer, shape: tuple[int, int, int]) -> PendingResult:
    """A product of one step whose operands lie one behind the other from `x` on."""
    m, k, n = shape
    return tl.composite("gemm", tl.ref(x, (m, k)), tl.ref(x + m * k, (k, n)))
