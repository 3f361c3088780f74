"""Group j: products whose tiles wait for the memory, by the number of tile buffers."""

from collections.abc import Iterator

from kernbench.theory.gemm import GemmNumbers, GemmShape
from kernbench.theory.tile_buffers import TileBufferTimes
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from kernbench.validate.gemm_runs import GemmCase, measure

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
    return [*_streamed(_tiles_of_a_packet(file)), _written(_tiles_of_a_packet(file))]


def _tiles_of_a_packet(file: TopologyFile) -> TopologyFile:
    """Operand tiles of one packet each, in float16, which the engine takes faster than they come."""
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
