"""Group f: what a whole run must conserve. Routers, crossbars and the IO NoC neither make bytes nor lose them."""

from collections import Counter
from collections.abc import Iterator

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.all_reduce import SIPS, all_reduce
from kernbench.validate.check import Check, Comparison
from runtime.model.graph import ChipGraph
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip
from sip_node.local_run import World

PLACES = {"router": "routers and UCIe ports", "xbar": "crossbars", "pcie_ep": "PCIe endpoints"}


def conservation(file: TopologyFile) -> list[Check]:
    """All checks of the group on one run."""
    world = all_reduce(file.text)
    graph = ChipGraph(parse_topology(file.text, "topology", SIPS))
    return [*_bytes(world, graph), *_packets(world), *_time(world)]


def _bytes(world: World, graph: ChipGraph) -> Iterator[Check]:
    """Kirchhoff's law at every place that only passes bytes on, per class of place."""
    into, out = Counter[str](), Counter[str]()
    worst: Counter[str] = Counter()
    for chip in world.node.chips.values():
        for node, (came, left) in _flows(chip, graph).items():
            kind = graph.nodes[node].kind
            into[kind] += came
            out[kind] += left
            worst[kind] = max(worst[kind], abs(came - left))
    for kind, name in PLACES.items():
        yield Check(
            f"f.bytes.{kind}",
            f"{name}: bytes out of all",
            "bytes in = bytes out",
            into[kind],
            out[kind],
            0,
            "B",
        )
        yield Check(
            f"f.each.{kind}",
            f"{name}: largest difference at one",
            "bytes in = bytes out",
            0,
            worst[kind],
            0,
            "B",
        )
    crossed = {
        sip: sum(port.nbytes for port in chip.boundary.ports)
        for sip, chip in world.node.chips.items()
    }
    arrived, departed = (
        into["io_noc"] + sum(crossed.values()),
        out["io_noc"] + sum(crossed.values()),
    )
    yield Check(
        "f.bytes.io_noc",
        "IO NoCs and the links between SIPs",
        "bytes in = bytes out",
        arrived,
        departed,
        0,
        "B",
    )
    for sip, chip in world.node.chips.items():
        came, left = _flows(chip, graph)[graph.io_noc]
        says = f"bytes that sip {1 - sip} sent to sip {sip}, seen at its IO NoC"
        yield Check(
            f"f.crossing.{sip}",
            says,
            "sent = delivered",
            crossed[1 - sip],
            left + crossed[sip] - came,
            0,
            "B",
        )


def _flows(chip: Chip, graph: ChipGraph) -> dict[int, tuple[int, int]]:
    """Node -> bytes in and bytes out over its links; a UCIe port counts with what it hangs on."""

    def place(node: int) -> int:
        return graph.behind(node) if graph.nodes[node].kind == "ucie" else node

    into, out = Counter[int](), Counter[int]()
    for link, server in zip(graph.links, chip.fabric.servers, strict=True):
        if server is not None:
            out[place(link.source)] += server.nbytes
            into[place(link.target)] += server.nbytes
    return {node.index: (into[node.index], out[node.index]) for node in graph.nodes}


def _packets(world: World) -> Iterator[Check]:
    chips = world.node.chips.values()
    sent, delivered = (
        sum(chip.fabric.sent for chip in chips),
        sum(chip.fabric.delivered for chip in chips),
    )
    yield Check("f.packets", "packets delivered", "sent = delivered", sent, delivered, 0, "packets")
    flying = sum(pe.dma.in_flight for chip in chips for pe in chip.pes)
    yield Check("f.in-flight", "DMA requests in flight at the end", "0", 0, flying, 0, "requests")
    sent = sum(record.nbytes for _, record in world.of("pe_dma", "ipcq_send"))
    received = sum(record.nbytes for _, record in world.of("pe_ipcq", "arrival"))
    yield Check(
        "f.bytes.ipcq",
        "bytes that arrived in receive rings",
        "sent = delivered",
        sent,
        received,
        0,
        "B",
    )
    moved = sum(pe.dma.nbytes for chip in chips for pe in chip.pes)
    logged = sum(record.nbytes for _, record in world.of("pe_dma"))
    yield Check(
        "f.bytes.dma", "bytes that the DMAs counted", "sum of the op log", logged, moved, 0, "B"
    )


def _time(world: World) -> Iterator[Check]:
    for sip, chip in world.node.chips.items():
        busiest = max(
            (*chip.fabric.busiest(), *chip.boundary.ports), key=lambda server: server.busy_ps
        )
        says = f"sip {sip}: the busiest link, {busiest.name}"
        elapsed_ns, busy_ns = world.node.now_ps / 1000, busiest.busy_ps / 1000
        yield Check(
            f"f.busy.{sip}",
            says,
            "busy <= elapsed",
            elapsed_ns,
            busy_ns,
            0,
            "ns",
            Comparison.AT_MOST,
        )
        wire_ns = busiest.serialisation_ps(busiest.nbytes) / 1000
        yield Check(
            f"f.rate.{sip}",
            f"{says}: its bytes at its bandwidth",
            "<= busy",
            busy_ns,
            wire_ns,
            0,
            "ns",
            Comparison.AT_MOST,
        )
