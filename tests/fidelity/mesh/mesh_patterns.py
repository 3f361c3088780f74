"""Group e, patterns: the fabric with unlimited buffers against a mesh of FIFO links, exactly."""

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.packet import Packet
from tests.fidelity.mesh.mesh_network import (
    CYCLE_PS,
    FLIT_BYTES,
    NODES,
    SIDE,
    MeshNetwork,
    destination,
    gap,
)
from tests.fidelity.theory.mesh_fifo import Generated, latencies

CYCLES = 1_500
TRAFFIC = (
    ("uniform", 8, 0.6),
    ("transpose", 1, 0.35),
    ("transpose", 8, 0.35),
    ("bitcomp", 8, 0.35),
    ("neighbor", 8, 0.5),
)
"""Pattern, flits of a packet, flits per node and cycle."""


class _Sink:
    def __init__(self) -> None:
        self.latencies: list[int] = []

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Called by the fabric: the tail of `packet` is ejected at `tail_ps`."""
        self.latencies.append((tail_ps - packet.transfer.sent_ps) // CYCLE_PS)


def patterns(file: TopologyFile, seed: int) -> list[Check]:
    """The mean and the largest latency of each traffic."""
    return [check for traffic in TRAFFIC for check in _pattern(file, seed, *traffic)]


def _pattern(file: TopologyFile, seed: int, pattern: str, flits: int, load: float) -> list[Check]:
    packets = _generated(pattern, flits, load, seed)
    expected, measured = latencies(packets, flits, SIDE), _simulated(file, packets, flits)
    text = f"{pattern}, {flits}-flit packets, {load} flits per node and cycle"
    return [
        Check(
            id=f"e.fifo.{pattern}.{flits}.{name}",
            text=f"{text}, {len(packets):,} packets: {name} latency",
            formula="FIFO links, cut-through, XY",
            expected=one,
            measured=other,
            unit="cycles",
        )
        for name, one, other in (
            ("mean", sum(expected) / len(packets), sum(measured) / len(packets)),
            ("largest", max(expected), max(measured)),
        )
    ]


def _generated(pattern: str, flits: int, load: float, seed: int) -> list[Generated]:
    """The packets of all nodes: each generates one in a cycle with probability load / flits."""
    packets: list[Generated] = []
    for node in range(NODES):
        rng, cycle = seeded(seed, node), 0
        while (cycle := cycle + gap(rng, load / flits)) < CYCLES:
            packets.append((cycle, node, destination(pattern, node, rng)))
    return sorted(packets)


def _simulated(file: TopologyFile, packets: list[Generated], flits: int) -> list[int]:
    network, sink = MeshNetwork(file), _Sink()
    for pe in network.pes:
        network.fabric.attach(pe, sink)
    for cycle, source, target in packets:
        network.engine.at(cycle * CYCLE_PS, network.send, source, target, flits * FLIT_BYTES)
    network.engine.run_before(NEVER_PS)
    return sink.latencies
