"""Group f: conservation of bytes and packets in a whole run; no link is overloaded."""

from collections import Counter
from collections.abc import Iterator

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.systems.all_reduce import SIPS, all_reduce
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation
from runtime.model.graph import ChipGraph
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip

FORWARDING = {
    "router": "routers and UCIe ports",
    "xbar": "crossbars",
    "pcie_ep": "PCIe endpoints",
}
"""The kinds of nodes that only forward packets."""


def conservation(file: TopologyFile) -> list[Check]:
    """All checks of the group, on one run."""
    world = all_reduce(file.text)
    graph = ChipGraph(parse_topology(file.text, "topology", SIPS))
    flows = {sip: _flows(chip, graph) for sip, chip in world.node.chips.items()}
    return [
        *_forwarded_bytes(flows, graph),
        *_bytes_between_sips(world, flows, graph),
        *_packets(world),
        *_time(world),
    ]


Flows = dict[int, tuple[int, int]]
"""Node -> bytes in, bytes out."""


def _flows(chip: Chip, graph: ChipGraph) -> Flows:
    """Bytes into and out of each node; a UCIe port counts as part of its router or NoC."""

    def owner(node: int) -> int:
        return graph.behind(node) if graph.nodes[node].kind == "ucie" else node

    into, out = Counter[int](), Counter[int]()
    for link, server in zip(graph.links, chip.fabric.servers, strict=True):
        if server is not None:
            out[owner(link.source)] += server.nbytes
            into[owner(link.target)] += server.nbytes
    return {node.index: (into[node.index], out[node.index]) for node in graph.nodes}


def _forwarded_bytes(flows: dict[int, Flows], graph: ChipGraph) -> Iterator[Check]:
    """Kirchhoff's law at each node that only forwards: in total, and at the worst node."""
    for kind, name in FORWARDING.items():
        nodes = [node for node in graph.nodes if node.kind == kind]
        pairs = [of_sip[node.index] for of_sip in flows.values() for node in nodes]
        yield _exact(
            f"f.bytes.{kind}",
            f"{name}: bytes out of all",
            "bytes in = bytes out",
            sum(into for into, _ in pairs),
            sum(out for _, out in pairs),
            "B",
        )
        # In total, errors of two nodes could cancel out.
        worst = max((abs(into - out) for into, out in pairs), default=0)
        yield _exact(
            f"f.each.{kind}",
            f"{name}: largest difference at one",
            "bytes in = bytes out",
            0,
            worst,
            "B",
        )


def _bytes_between_sips(
    world: Simulation, flows: dict[int, Flows], graph: ChipGraph
) -> Iterator[Check]:
    """The same at the IO NoCs, which also receive from and send to the links between SIPs."""
    crossed = {
        sip: sum(port.nbytes for port in chip.boundary.ports)
        for sip, chip in world.node.chips.items()
    }
    at_nocs = {sip: of_sip[graph.io_noc] for sip, of_sip in flows.items()}
    yield _exact(
        "f.bytes.io_noc",
        "IO NoCs and the links between SIPs",
        "bytes in = bytes out",
        sum(into for into, _ in at_nocs.values()) + sum(crossed.values()),
        sum(out for _, out in at_nocs.values()) + sum(crossed.values()),
        "B",
    )
    for sip, (into, out) in at_nocs.items():
        yield _exact(
            f"f.crossing.{sip}",
            f"bytes from sip {1 - sip} to sip {sip}, measured at the IO NoC of sip {sip}",
            "sent = delivered",
            crossed[1 - sip],
            out + crossed[sip] - into,
            "B",
        )


def _packets(world: Simulation) -> Iterator[Check]:
    """Packets and bytes at their ends: sent and delivered, counted and logged."""
    chips = world.node.chips.values()
    sent = sum(chip.fabric.sent for chip in chips)
    delivered = sum(chip.fabric.delivered for chip in chips)
    in_flight = sum(pe.dma.in_flight for chip in chips for pe in chip.pes)
    written = sum(record.nbytes for _, record in world.of("pe_dma", "ipcq_send"))
    received = sum(record.nbytes for _, record in world.of("pe_ipcq", "arrival"))
    counted = sum(pe.dma.nbytes for chip in chips for pe in chip.pes)
    logged = sum(record.nbytes for _, record in world.of("pe_dma"))
    conserved, dma = "sent = delivered", "bytes that the DMAs counted"
    yield _exact("f.packets", "packets delivered", conserved, sent, delivered, "packets")
    yield _exact("f.in-flight", "DMA requests in flight at the end", "0", 0, in_flight, "requests")
    rings = "bytes that arrived in receive rings"
    yield _exact("f.bytes.ipcq", rings, conserved, written, received, "B")
    yield _exact("f.bytes.dma", dma, "sum of the op log", logged, counted, "B")


def _time(world: Simulation) -> Iterator[Check]:
    """The busiest link of each SIP: busy for no more than the time, and for its bytes at least."""
    elapsed_ns = world.node.now_ps / 1000
    for sip, chip in world.node.chips.items():
        links = (*chip.fabric.busiest(), *chip.boundary.ports)
        busiest = max(links, key=lambda server: server.busy_ps)
        text, busy_ns = f"sip {sip}: the busiest link, {busiest.name}", busiest.busy_ps / 1000
        bytes_ns = busiest.serialisation_ps(busiest.nbytes) / 1000
        yield _at_most(f"f.busy.{sip}", text, "busy <= elapsed", elapsed_ns, busy_ns)
        at_full_rate = f"{text}: its bytes at its bandwidth"
        yield _at_most(f"f.rate.{sip}", at_full_rate, "<= busy", busy_ns, bytes_ns)


def _exact(
    check_id: str, text: str, formula: str, expected: float, measured: float, unit: str
) -> Check:
    return Check(
        id=check_id,
        text=text,
        formula=formula,
        expected=expected,
        measured=measured,
        unit=unit,
    )


def _at_most(check_id: str, text: str, formula: str, limit_ns: float, measured_ns: float) -> Check:
    return Check(
        id=check_id,
        text=text,
        formula=formula,
        expected=limit_ns,
        measured=measured_ns,
        unit="ns",
        relation=Relation.AT_MOST,
    )
