"""Group n, flows that meet: writes of several PEs at one link or port, against a FIFO server."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import (
    MESH_GBS,
    PE_GBS,
    SRAM_GBS,
    TCM_GBS,
    UCIE_GBS,
    Route,
    RouteEnd,
)
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from tests.fidelity.theory.fifo import FlowArrivals, last_ends_ps

FORMULA = "in order of arrival, one packet at a time"
SIPS = 4
LONG = 16
"""Packets of a long flow."""
SLOW = 4
"""A port of the TCM that is to be the bottleneck has this share of the bandwidth of the mesh."""

_SHAPES = {"ring_1d": "forward", "mesh_2d_no_wrap": "grid"}
"""Networks of the four SIPs, and the names of their checks."""

Source = tuple[int, int, int]
"""SIP, cube and PE."""
Entry = tuple[str, int]
"""A component, and its SIP."""


@dataclass(frozen=True)
class MeetingFlow:
    """A write of whole packets by a PE.

    Its route is `before` the common server and `after` it; the acknowledgement takes `back`.
    """

    name: str
    source: Source
    address: int
    before: Route
    after: Route
    back: Route
    packets: int = 1


class FlowRuns:
    """Flows on one topology file; each meeting is a run of its own."""

    def __init__(self, file: TopologyFile) -> None:
        self.file, self.times, self.plan = file, RouteTimes(file), FloorPlan(file)
        self.sips = int(file["system.sips.count"])
        self.addresses = AddressMap(parse_topology(file.text, "topology", self.sips))

    def checks(
        self, name: str, text: str, flows: Sequence[MeetingFlow], server_gbs: str
    ) -> list[Check]:
        """A check of the time of each flow; `server_gbs` is the key of the bandwidth of the common
        server.
        """
        size = self.file["packet_bytes"]
        started_ps, ended_ps = self.run(flows)
        dma_ps = self.times.commands.write_start_ps
        arrivals = [
            FlowArrivals(
                start_ps + dma_ps + self.times.latency_ps(flow.before),
                flow.packets,
                # All packets leave the TCM first; the slowest server spaces them.
                transfer_ps(size, self.times.narrowest_gbs(flow.before, TCM_GBS)),
            )
            for flow, start_ps in zip(flows, started_ps, strict=True)
        ]
        served_ps = last_ends_ps(arrivals, transfer_ps(size, self.file.number(server_gbs)))
        return [
            Check(
                id=f"n.meet.{name}.{flow.name}",
                text=f"{text}: {flow.name}",
                formula=FORMULA,
                expected=end_ps
                + self.times.latency_ps(flow.after)
                + self.times.control_ps(flow.back)
                - start_ps,
                measured=measured_ps - start_ps,
                unit="ps",
            )
            for flow, start_ps, end_ps, measured_ps in zip(
                flows, started_ps, served_ps, ended_ps, strict=True
            )
        ]

    def target(self, flow: int) -> int:
        """The cube that a flow is sent to: flows in turn to cubes with links of their own to the IO
        NoC, so that they share no link behind that between SIPs.
        """
        cubes = beside(self.file)
        return cubes[flow % len(cubes)]

    def flow(
        self, name: str, ends: tuple[RouteEnd, RouteEnd], number: int, entry: Entry, packets: int
    ) -> MeetingFlow:
        """Flow `number`, from one TCM to another; `entry` is the component before the common
        link.
        """
        source, target = ends
        before, after = _split_behind(self.plan.route(source, target), *entry)
        offset = number * LONG * self.file["packet_bytes"]
        return MeetingFlow(
            name=name,
            source=(source.sip, source.cube, source.pe),
            address=self.addresses.pe_tcm_addr(target.sip, target.cube, target.pe, offset),
            before=before,
            after=after,
            back=self.plan.route(target, source),
            packets=packets,
        )

    def run(self, flows: Sequence[MeetingFlow]) -> tuple[list[int], list[int]]:
        """Start and end of each flow."""
        world = self.simulated(flows)
        spans = {
            ((sip, record.cube, record.pe), record.address): (record.start_ps, record.end_ps)
            for sip, record in world.of("pe_dma")
        }
        times_ps = [spans[flow.source, flow.address] for flow in flows]
        return [start for start, _ in times_ps], [end for _, end in times_ps]

    def simulated(self, flows: Sequence[MeetingFlow], *, record: bool = False) -> Simulation:
        """The run of the flows, which begin together; with `record`, with its tables."""
        size = self.file["packet_bytes"]

        def program(rank: int) -> None:
            own = [
                PeDmaMsg(*flow.source[1:], "write", flow.address, flow.packets * size)
                for flow in flows
                if flow.source[0] == rank
            ]
            device = running_rank().device
            if own:
                device.wait(device.submit(own, "flows that meet"))

        return simulate(
            program,
            self.sips,
            topology=self.file.text,
            data=False,
            remote_dma=True,
            record=record,
        )


def meeting_flows(file: TopologyFile) -> list[Check]:
    """All meetings; those that need more cubes or PEs than the file has are left out."""
    checks = [*_tcm(file), *_sram(file)]
    for packets in (1, LONG):
        checks += [*_corner(file, packets), *_switch_output(file, packets)]
        checks += _switch_input(file, packets)
        for shape in _SHAPES:
            checks += _forwarded(file, packets, shape)
    return checks


def _tcm(file: TopologyFile) -> list[Check]:
    """A PE writes a packet from its TCM while another one writes a packet into it.

    The port of the TCM is slow. So the packet that comes in holds the link to the PE longer than
    its bytes take there, and the acknowledgement of the other packet waits behind it.
    """
    if file.pes_per_cube < 3:
        return []
    slow_gbs = min(file[MESH_GBS], file[PE_GBS]) / SLOW
    net = FlowRuns(file.with_values({TCM_GBS: slow_gbs}))
    route = net.plan.between_pes
    out = MeetingFlow(
        name="out",
        source=(0, 0, 0),
        address=net.addresses.pe_tcm_addr(0, 0, 1, 0),
        before=(),
        after=route((0, 0), (0, 1)),
        back=route((0, 1), (0, 0)),
    )
    into = MeetingFlow(
        name="in",
        source=(0, 0, 2),
        address=net.addresses.pe_tcm_addr(0, 0, 0, 0),
        before=route((0, 2), (0, 0)),
        after=(),
        back=route((0, 0), (0, 2)),
    )
    text = "a packet into the TCM of a PE behind a packet out of it"
    return [*net.checks("tcm", text, [out, into], TCM_GBS)[1:], _held(net, out, into)]


def _held(net: FlowRuns, out: MeetingFlow, into: MeetingFlow) -> Check:
    """The time of the packet out: its acknowledgement waits for the last link of its route."""
    file, times = net.file, net.times
    [start_ps, other_ps], [end_ps, _] = net.run([out, into])
    service_ps = transfer_ps(file["packet_bytes"], file.number(TCM_GBS))
    dma_ps, last = times.commands.write_start_ps, into.before[-1:]
    # Both use the last hop into the PE: `last` has the delays behind that link.
    held_ps = other_ps + dma_ps + times.latency_ps(into.before[:-1]) + service_ps
    written_ps = start_ps + dma_ps + times.latency_ps(out.after) + service_ps
    acknowledged_ps = max(written_ps + times.latency_ps(out.back[:-1]), held_ps)
    control_ps = times.control_ps(out.back) - times.latency_ps(out.back)
    return Check(
        id="n.meet.held",
        text="a packet out of the TCM of a PE whose acknowledgement waits for a packet into it",
        formula="a link is held until the tail of a packet has passed",
        expected=acknowledged_ps + times.latency_ps(last) + control_ps - start_ps,
        measured=end_ps - start_ps,
        unit="ps",
    )


def _sram(file: TopologyFile) -> list[Check]:
    """Two PEs write many packets each to the SRAM of their cube."""
    if file.pes_per_cube < 2:
        return []
    narrow_gbs = min(file[SRAM_GBS], file[MESH_GBS] / 2, file[PE_GBS] / 2, file[TCM_GBS] / 2)
    net = FlowRuns(file.with_values({SRAM_GBS: narrow_gbs}))
    sram = RouteEnd("sram", 0, 0)
    flows: list[MeetingFlow] = []
    for pe in range(2):
        source = RouteEnd("pe", 0, 0, pe)
        route = net.plan.route(source, sram)
        flows.append(
            MeetingFlow(
                name=f"pe{pe}",
                source=(0, 0, pe),
                address=net.addresses.cube_sram_addr(0, 0, pe * LONG * file["packet_bytes"]),
                before=route[:-1],
                after=route[-1:],
                back=net.plan.route(sram, source),
                packets=LONG,
            )
        )
    text = f"two PEs write {LONG} packets each to one SRAM"
    return net.checks("sram", text, flows, SRAM_GBS)


def _switch_output(file: TopologyFile, packets: int) -> list[Check]:
    """Three SIPs write to a fourth one through a switch: their packets arrive together."""
    net = FlowRuns(between_sips(file, "switch"))
    flows = [
        net.flow(f"sip{sip}", (_pe(sip, 0), _pe(0, net.target(sip))), sip, ("switch", 0), packets)
        for sip in range(1, SIPS)
    ]
    text = f"{len(flows)} SIPs write {_packets(packets)} each to one through a switch"
    return net.checks(f"switch.out.{packets}", text, flows, UCIE_GBS)


def _switch_input(file: TopologyFile, packets: int) -> list[Check]:
    """Two cubes of a SIP, each with its own link to the IO NoC, write to two SIPs."""
    file = between_sips(file, "switch")
    cubes = beside(file)
    if len(cubes) < 2:
        return []
    net = FlowRuns(file)
    flows = [
        net.flow(f"cube{cube}", (_pe(0, cube), _pe(sip, 0)), 0, (f"io.ucie.sip{sip}", 0), packets)
        for sip, cube in enumerate(cubes, start=1)
    ]
    text = f"two cubes write {_packets(packets)} each to two SIPs through one port to a switch"
    return net.checks(f"switch.in.{packets}", text, flows, UCIE_GBS)


def _forwarded(file: TopologyFile, packets: int, shape: str) -> list[Check]:
    """Two SIPs write to a third one; the second of them forwards the packets of the first.

    On a ring these are SIPs 0, 1 and 2; on a grid of 2 x 2 SIPs 0, 1 and 3, since a route follows
    columns before rows. Packets of its own are first at the link of the second SIP if they come
    from the nearest cube, last if they come from the farthest one.
    """
    net, checks = FlowRuns(between_sips(file, "direct", shape)), list[Check]()
    last = 2 if shape == "ring_1d" else SIPS - 1
    by_distance = sorted(
        range(net.file.cubes),
        key=lambda cube: net.times.latency_ps(net.plan.route(_pe(0, cube), RouteEnd("io_noc"))),
    )
    near, far = by_distance[0], by_distance[-1]
    for name, cube in (("near", near), ("far", far)):
        flows = [
            net.flow(
                f"sip{sip}",
                (_pe(sip, source), _pe(last, net.target(sip))),
                sip,
                (f"io.ucie.sip{last}", 1),
                packets,
            )
            for sip, source in ((0, near), (1, cube))
        ]
        text = f"a SIP writes {_packets(packets)} and forwards as many, its own from a {name} cube"
        checks += net.checks(f"{_SHAPES[shape]}.{name}.{packets}", text, flows, UCIE_GBS)
    return checks


def _corner(file: TopologyFile, packets: int) -> list[Check]:
    """Cubes 0 and 1 of 2 x 2 write to cube 3, columns before rows: both over the link from 1."""
    gbs = min(file[key] for key in (UCIE_GBS, MESH_GBS, PE_GBS, TCM_GBS))
    net = FlowRuns(file.with_values({"sip.cube_mesh": {"w": 2, "h": 2}, UCIE_GBS: gbs}))
    flows = [
        net.flow(f"cube{source}", (_pe(0, source), _pe(0, 3)), source, ("cube1.ucie.S", 0), packets)
        for source in (0, 1)
    ]
    text = f"two cubes write {_packets(packets)} each to a third one, the first past the second"
    return net.checks(f"cubes.{packets}", text, flows, UCIE_GBS)


def between_sips(file: TopologyFile, fabric: str, shape: str = "ring_1d") -> TopologyFile:
    """Four small SIPs, direct or behind a switch; no link is slower than UCIe."""
    gbs = min(file[key] for key in (UCIE_GBS, MESH_GBS, PE_GBS, TCM_GBS))
    sips = file.on_a_ring(SIPS)["system.sips"] | {"fabric": fabric, "topology": shape}
    mesh = {side: min(file[f"sip.cube_mesh.{side}"], 2) for side in "wh"}
    return file.with_values({"system.sips": sips, "sip.cube_mesh": mesh, UCIE_GBS: gbs})


def beside(file: TopologyFile) -> tuple[int, ...]:
    """Two cubes with different ports of the IO chiplet; one in a mesh with one port."""
    width, height = file["sip.cube_mesh.w"], file["sip.cube_mesh.h"]
    by_column = file["sip.io_chiplet.edge"] in "NS"
    if (width if by_column else height) < 2:
        return (0,)
    return 0, 1 if by_column else width


def _packets(count: int) -> str:
    return "a packet" if count == 1 else f"{count} packets"


def _pe(sip: int, cube: int) -> RouteEnd:
    return RouteEnd("pe", sip, cube, 0)


def _split_behind(route: Route, node: str, sip: int = 0) -> tuple[Route, Route]:
    """The hops up to that into `node`, and those behind it."""
    entry = next(index for index, hop in enumerate(route) if (hop.node, hop.sip) == (node, sip))
    return route[: entry + 1], route[entry + 1 :]
