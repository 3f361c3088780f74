"""Group n, head times: a link is held from the head of a packet to its tail, and no longer.

The ends of transfers depend on tails alone. A head that is too early holds the next link for longer
than its bytes take, which delays others; the busy time of links shows it.
"""

from collections.abc import Mapping
from re import fullmatch

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.paths.routes import MESH_GBS, PE_GBS, TCM_GBS, UCIE_GBS, XBAR_GBS
from kernbench.oracle.theory.servers import Serialiser, transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from tests.fidelity.service.meeting_flows import beside

SIPS = 3
PACKETS = 4


def head_times(file: TopologyFile) -> list[Check]:
    """A read from a slice that is slower than the links, and two SIPs behind a switch."""
    mesh = {side: min(file[f"sip.cube_mesh.{side}"], 2) for side in "wh"}
    file = file.with_values({"sip.cube_mesh": mesh})
    return [_read(file), _switch(file)]


def _read(file: TopologyFile) -> Check:
    """PE 0 reads a packet of its own slice: both links on its way are held for the slice's time."""
    # The slice is the slowest server, so that its head is ahead of its tail by more than a link's.
    narrow_gbs = min(file[XBAR_GBS], file[TCM_GBS]) / file["hbm.num_pcs"] / 2
    file = file.with_values({"hbm.pc_bw_gbs": min(file["hbm.pc_bw_gbs"], narrow_gbs)})
    size = file["packet_bytes"]
    service = Serialiser(slice_gbs(file), file["hbm.num_pcs"], file["hbm.burst_bytes"])
    address = _addresses(file, 1).pe_hbm_addr(0, 0, 0, 0)
    world = _run(file, 1, {0: PeDmaMsg(0, 0, "read", address, size)})
    return Check(
        id="n.head.read",
        text=f"a read of {size} B in the own slice: the links back are held for the slice's time",
        formula="2 S of the slice",
        expected=2 * service.service_ps(size),
        measured=_held_ps(
            world, r"cube0\.pe0\.hbm_ctrl->cube0\.pe0\.xbar", r"cube0\.pe0\.xbar->cube0\.pe0"
        ),
        unit="ps",
    )


def _switch(file: TopologyFile) -> Check:
    """SIPs 1 and 2 write to cubes of SIP 0: the second packet arrives when the first has passed."""
    gbs = min(file[key] for key in (UCIE_GBS, MESH_GBS, PE_GBS, TCM_GBS))
    sips = file.on_a_ring(SIPS)["system.sips"] | {"fabric": "switch"}
    file = file.with_values({"system.sips": sips, UCIE_GBS: gbs})
    addresses, cubes, size = _addresses(file, SIPS), beside(file), file["packet_bytes"]
    writes: dict[int, PeDmaMsg] = {}
    for sip in range(1, SIPS):
        target = addresses.pe_tcm_addr(0, cubes[sip % len(cubes)], 0, sip * PACKETS * size)
        writes[sip] = PeDmaMsg(0, 0, "write", target, PACKETS * size)
    world = _run(file, SIPS, writes)
    count = len(writes) * PACKETS
    return Check(
        id="n.head.switch",
        text=f"{count} packets of two SIPs to one: the links behind the switch are held for them",
        formula=f"{count} S",
        expected=count * transfer_ps(size, file.number(UCIE_GBS)),
        measured=_held_ps(world, r"io\.ucie\.mesh\d+->cube.*"),
        unit="ps",
    )


def _addresses(file: TopologyFile, sips: int) -> AddressMap:
    return AddressMap(parse_topology(file.text, "topology", sips))


def _run(file: TopologyFile, sips: int, requests: Mapping[int, PeDmaMsg]) -> Simulation:
    """One request of each of some SIPs, all at the same time."""

    def program(rank: int) -> None:
        device = running_rank().device
        if rank in requests:
            device.wait(device.submit([requests[rank]], "a transfer"))

    return simulate(program, sips, topology=file.text, data=False, remote_dma=True)


def _held_ps(world: Simulation, *patterns: str) -> int:
    """The busy time of the links of SIP 0 whose names match a pattern."""
    links = world.node.chips[0].fabric.busiest()
    return sum(
        link.busy_ps for link in links for pattern in patterns if fullmatch(pattern, link.name)
    )
