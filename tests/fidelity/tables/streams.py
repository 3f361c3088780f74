"""Latency hidden by streaming: with tile buffers in a product, with packets in flight in a read.

Both tables are in `docs/internals/sensitivity.md`; `python -m
tests.fidelity.tables.sensitivity` prints them.
"""

from collections.abc import Mapping, Sequence

from kernbench import tl, torch
from kernbench.measure.transfers.cases import ProbeCases
from kernbench.measure.transfers.measure import ProbeTransfer, measure
from kernbench.oracle.theory.engines.gemm import GemmNumbers, GemmShape, streamed_bytes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.model.placement import ONE_PE
from runtime.model.topology import parse_topology

LATENCIES_NS = (0.0, 52.0, 60.0, 100.0, 200.0)
TILE_BUFFERS = (2, 3, 4, 6, 8)
SIDE = 256
"""Rows and columns of the matrices of the product, in float16."""
OUTSTANDING = (1, 2, 4, 8, 16, 32)
READS: Mapping[str, str] = {
    "dma-own": "own slice",
    "dma-cube-worst": "farthest cube",
    "dma-sip-1": "next SIP",
}
"""The cases of `probe` whose bandwidth is measured."""
LONG_PACKETS = 64
"""The steady state is the difference of reads of this many packets and of twice as many."""
SIPS = 2


def product_rows(topology_yaml: str) -> list[tuple[str, list[str]]]:
    """The times of a streamed product by latency, and how far they are above the memory bound."""
    file, shape = TopologyFile.of(topology_yaml), GemmShape(SIDE, SIDE, SIDE)
    numbers = GemmNumbers.of(file)
    read, written = sum(streamed_bytes(shape, numbers.tile, 2)), 2 * SIDE * SIDE
    bound_ps = numbers.memory_bound_ps(read, written)
    rows: list[tuple[str, list[str]]] = []
    for latency_ns in LATENCIES_NS:
        times_ps = [product_ps(file, latency_ns, buffers) for buffers in TILE_BUFFERS]
        cells = [
            f"{time_ps / 1e6:.2f} (+{float(100 * (time_ps / bound_ps - 1)):.1f} %)"
            for time_ps in times_ps
        ]
        rows.append((f"{latency_ns:g}", cells))
    return rows


def product_ps(file: TopologyFile, latency_ns: float, buffers: int) -> int:
    """A kernel that multiplies matrices which are blocked in its slice, into its slice."""
    file = file.with_values(
        {
            "sip.cube_mesh": {"w": 1, "h": 1},
            "cube.hbm_ctrl.latency_ns": latency_ns,
            "pe.scheduler.tile_buffers": buffers,
            # A channel and a place for each tile, so that the buffers alone limit the stream.
            "pe.dma.channels": 2 * max(TILE_BUFFERS),
            "pe.dma.outstanding": 2 * max(TILE_BUFFERS),
        }
    )

    def kernel(*matrices: tl.Pointer) -> None:
        a, b, out = (tl.ref(matrix, (SIDE, SIDE), blocked=True) for matrix in matrices)
        tl.wait(tl.composite("gemm", a, b, out))

    def program(_rank: int) -> int:
        matrices = [torch.empty(SIDE, SIDE, dtype=torch.float16, dp=ONE_PE) for _ in range(3)]
        launched = torch.launch("product", kernel, *matrices)
        torch.ahbm.synchronize()
        return launched.pe_exec_ps

    time_ps: int = simulate(program, 1, topology=file.text, data=False).returned[0]
    return time_ps


def read_rows(topology_yaml: str) -> list[tuple[str, list[str]]]:
    """The bandwidth of long reads by packets in flight, measured and by the closed form."""
    file = TopologyFile.of(topology_yaml)
    rows: list[tuple[str, list[str]]] = []
    for outstanding in OUTSTANDING:
        text = file.with_values({"pe.dma.outstanding": outstanding}).text
        cells = [f"{cell:.1f}" for name in READS for cell in read_gbs(text, name)]
        rows.append((str(outstanding), cells))
    return rows


def read_gbs(topology_yaml: str, name: str) -> tuple[float, float]:
    """(simulated, closed form) in GB/s of long reads of one case: min(bottleneck, window)."""
    topology = parse_topology(topology_yaml, "topology.yaml", SIPS)
    cases = ProbeCases(topology)
    [case] = (each for each in cases.cases if each.name == name)
    long_bytes = LONG_PACKETS * topology.packet_bytes
    once, twice = measure(
        cases,
        topology_yaml,
        [ProbeTransfer(case, "read", nbytes) for nbytes in (long_bytes, 2 * long_bytes)],
    )
    # Both reads have the same latency, which the difference of their times cancels.
    gbs = long_bytes * 1000 / (twice.measured_ps - once.measured_ps)
    return gbs, float(twice.form.bottleneck.bw_gbs)


def markdown(corner: str, columns: Sequence[str], rows: Sequence[tuple[str, list[str]]]) -> str:
    """A table with its first column left-aligned."""
    lines = [_line(corner, columns), "| --- |" + " ---: |" * len(columns)]
    return "\n".join([*lines, *(_line(first, cells) for first, cells in rows)])


def _line(first: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([first, *cells])} |"


def tables(topology_yaml: str) -> list[str]:
    """Both tables, in Markdown."""
    products = markdown(
        "latency (ns)",
        [f"{buffers} buffers (µs)" for buffers in TILE_BUFFERS],
        product_rows(topology_yaml),
    )
    reads = markdown(
        "packets in flight",
        [f"{text} (GB/s)" for memory in READS.values() for text in (memory, "closed form")],
        read_rows(topology_yaml),
    )
    return [products, reads]
