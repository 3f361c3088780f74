"""Group w: the waits that a run records, which `why` explains, against closed forms.

Of two flows that meet at one FIFO server, each has waited for what its last packet leaves later
than if the flow were alone: its own packets are no delay by others. At a link it is `link_ps` of
the record of the transfer, or of its crossing where the link leads to another SIP; at the port of a
TCM it is `memory_ps`, which a crossing carries on.
"""

from collections.abc import Callable, Sequence

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.engines.gemm import GemmNumbers
from kernbench.oracle.theory.paths.routes import MESH_GBS, PE_GBS, TCM_GBS, UCIE_GBS, RouteEnd
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.dtypes import float16
from runtime.core.run_tables import OPS
from runtime.device.launches.launch import launch_on
from runtime.language import tl
from runtime.language.value import Value
from tests.fidelity.engines.vector_meetings import LANES, VALUES, K, M, N
from tests.fidelity.service.meeting_flows import (
    LONG,
    SLOW,
    FlowRuns,
    MeetingFlow,
    beside,
    between_sips,
)
from tests.fidelity.theory.fifo import FlowArrivals, last_ends_ps
from tests.support.recorded_programs import Row, rows_of

_BEHIND_OTHERS = "end of the last packet - its end if the flow were alone"


def recorded_waits(file: TopologyFile) -> list[Check]:
    """All checks of recorded waits."""
    checks = [*_at_memory(file), *_products(file), *_chains(file)]
    for packets in (1, LONG):
        checks += [*_at_link(file, packets), *_between_sips(file, packets)]
    return checks


def _waits_ps(
    net: FlowRuns, flows: Sequence[MeetingFlow], starts_ps: Sequence[int], server_gbs: str
) -> list[int]:
    """The time for which the last packet of each flow waits for the other flows."""
    size = net.file["packet_bytes"]
    service_ps = transfer_ps(size, net.file.number(server_gbs))
    arrivals = [
        FlowArrivals(
            start_ps + net.times.commands.write_start_ps + net.times.latency_ps(flow.before),
            flow.packets,
            transfer_ps(size, net.times.narrowest_gbs(flow.before, TCM_GBS)),
        )
        for flow, start_ps in zip(flows, starts_ps, strict=True)
    ]
    together = last_ends_ps(arrivals, service_ps)
    alone = [last_ends_ps([each], service_ps)[0] for each in arrivals]
    return [both - one for both, one in zip(together, alone, strict=True)]


def _transfers(world: Simulation, flows: Sequence[MeetingFlow]) -> list[Row]:
    """The records of the DMA engines for the flows."""
    rows = {
        (sip, row["cube"], row["pe"], row["address"]): row
        for sip in world.records
        for row in rows_of(world, sip, OPS)
        if row["engine"] == "pe_dma"
    }
    return [rows[(*flow.source, flow.address)] for flow in flows]


def _crossings(world: Simulation, sip: int, port: str, flows: Sequence[MeetingFlow]) -> list[Row]:
    """The records of a port to another SIP for the flows."""
    rows = {
        row["address"]: row
        for row in rows_of(world, sip, OPS)
        if (row["engine"], row["name"]) == (port, "write")
    }
    return [rows[flow.address] for flow in flows]


def _check(name: str, text: str, formula: str, expected: int, measured: int) -> Check:
    return Check(
        id=f"w.{name}",
        text=text,
        formula=formula,
        expected=expected,
        measured=measured,
        unit="ps",
    )


def _at_link(file: TopologyFile, packets: int) -> list[Check]:
    """Cubes 0 and 1 of 2 x 2 write to cube 3, columns before rows: both over the link from 1."""
    gbs = min(file[key] for key in (UCIE_GBS, MESH_GBS, PE_GBS, TCM_GBS))
    net = FlowRuns(file.with_values({"sip.cube_mesh": {"w": 2, "h": 2}, UCIE_GBS: gbs}))
    flows = [
        net.flow(f"cube{source}", (_pe(0, source), _pe(0, 3)), source, ("cube1.ucie.S", 0), packets)
        for source in (0, 1)
    ]
    rows = _transfers(net.simulated(flows, record=True), flows)
    [wait_ps, _] = _waits_ps(net, flows, [row["start_ps"] for row in rows], UCIE_GBS)
    return [
        _check(
            f"link.{packets}",
            f"{packets} packets over a link that a nearer cube uses: their wait at links",
            _BEHIND_OTHERS,
            wait_ps,
            rows[0]["link_ps"],
        )
    ]


def _between_sips(file: TopologyFile, packets: int) -> list[Check]:
    """SIP 0 writes to SIP 2 past SIP 1, which writes there as well: both through one port."""
    net = FlowRuns(between_sips(file, "direct"))
    flows = [
        net.flow(
            f"sip{sip}", (_pe(sip, 0), _pe(2, net.target(sip))), sip, ("io.ucie.sip2", 1), packets
        )
        for sip in (0, 1)
    ]
    world = net.simulated(flows, record=True)
    starts = [row["start_ps"] for row in _transfers(world, flows)]
    rows = _crossings(world, 1, "ucie.sip2", flows)
    waits = _waits_ps(net, flows, starts, UCIE_GBS)
    return [
        _check(
            f"port.{packets}.{flow.name}",
            f"{packets} packets through a port to another SIP that others use: their wait there",
            _BEHIND_OTHERS,
            wait_ps,
            row["link_ps"],
        )
        for flow, wait_ps, row in zip(flows, waits, rows, strict=True)
    ]


def _at_memory(file: TopologyFile) -> list[Check]:
    """Two packets from one TCM with a slow port to another SIP.

    The second one waits for the port of the TCM, and its crossing has that wait.
    """
    slow_gbs = min(file[MESH_GBS], file[PE_GBS], file[UCIE_GBS]) / SLOW
    net = FlowRuns(between_sips(file.with_values({TCM_GBS: slow_gbs}), "direct"))
    cube = beside(net.file)[0]
    flows = [
        net.flow(f"write{number}", (_pe(0, cube), _pe(1, cube)), number, ("io.ucie.sip1", 0), 1)
        for number in range(2)
    ]
    world = net.simulated(flows, record=True)
    rows = _transfers(world, flows)
    crossings = _crossings(world, 0, "ucie.sip1", flows)
    service_ps = transfer_ps(net.file["packet_bytes"], net.file.number(TCM_GBS))
    start_ps, later_ps = (row["start_ps"] for row in rows)
    wait_ps = max(start_ps + service_ps - later_ps, 0)
    text = "a packet behind another one at the port of a TCM"
    return [
        _check(f"memory.{name}", f"{text}: memory wait of {what}", "service - later start", *both)
        for name, what, both in (
            ("transfer", "its transfer", (wait_ps, rows[1]["memory_ps"])),
            ("crossing", "its crossing", (wait_ps, crossings[1]["memory_ps"])),
            ("first", "the crossing in front", (0, crossings[0]["memory_ps"])),
        )
    ]


def _products(file: TopologyFile) -> list[Check]:
    """Two products of operands in TCM, of two steps each, the second one queued behind the first.

    The fetch of a step takes as long as its computation, so only the first step of all waits.
    """
    file = file.with_values(VALUES)

    def kernel() -> None:
        a, b = tl.full((M, 2 * K), 1.0, float16), tl.full((2 * K, N), 1.0, float16)
        first, second = tl.composite("gemm", a, b), tl.composite("gemm", a, b)
        tl.wait(first)
        tl.wait(second)

    rows = _of_kernel(file, kernel)
    steps = [row for row in rows if row["engine"] == "pe_gemm"]
    fetch_ps = GemmNumbers.of(file).fetch_ps(float16.itemsize)
    fills = [row for row in rows if row["engine"] == "pe_math"]
    submitted_ps = max(row["end_ps"] for row in fills) + FixedTimes(file).issue_ps
    text = "a step of a product of operands in TCM"
    return [
        _check(
            "product.requested",
            f"{text}, the first on an idle engine: its request",
            "submission of the product",
            submitted_ps,
            steps[0]["requested_ps"],
        ),
        _check(
            "product.stall",
            f"{text}, the first: its wait for operands",
            "fetch of A and B",
            fetch_ps,
            steps[0]["start_ps"] - steps[0]["requested_ps"],
        ),
        _check(
            "product.queued",
            f"{text}, the first of a product behind another one: its request",
            "end of the last step before",
            steps[1]["end_ps"],
            steps[2]["requested_ps"],
        ),
    ]


def _root_of_exponential(x: Value) -> Value:
    return tl.sqrt(tl.exp(x))


def _chains(file: TopologyFile) -> list[Check]:
    """An exponential and a square root of one stream share its time by their cycles."""
    file = file.with_values(VALUES)

    def kernel() -> None:
        x = tl.full(16 * LANES, 1.0, tl.float32)
        tl.fused(_root_of_exponential, x)

    exp, sqrt = (
        row
        for row in _of_kernel(file, kernel)
        if row["engine"] == "pe_math" and row["name"] in ("exp", "sqrt")
    )
    cycles = [file[f"pe.math.cycles.{name}"] for name in ("exp", "sqrt")]
    span_ps = sqrt["end_ps"] - exp["start_ps"]
    return [
        _check(
            "chain.share",
            "an exponential in one stream with a square root: its share of the time",
            "cycles / cycles of both",
            span_ps * cycles[0] // sum(cycles),
            exp["end_ps"] - exp["start_ps"],
        ),
        _check(
            "chain.behind",
            "the square root behind it: its begin",
            "end of the exponential",
            exp["end_ps"],
            sqrt["start_ps"],
        ),
    ]


def _of_kernel(file: TopologyFile, kernel: Callable[[], None]) -> list[Row]:
    """The operations of a kernel on one PE."""

    def program(_rank: int) -> None:
        launch_on("kernel", kernel, (), [], [(0, 0)])

    world = simulate(program, 1, topology=file.on_a_ring(1).text, data=False, record=True)
    return rows_of(world, 0, OPS)


def _pe(sip: int, cube: int) -> RouteEnd:
    return RouteEnd("pe", sip, cube, 0)
