"""Random machines of one SIP, and random loads and stores of their PEs, for the oracle."""

from random import Random
from typing import Any, NamedTuple

from runtime.core.config.config_file import value_at, with_values
from tests.oracle.machine import OracleRequest
from tests.oracle.routes import Node
from tests.support.random_topologies import default_content, drawn, random_content, refusals

RESTRICTED: dict[str, Any] = {
    "system.sips.count": 1,
    "system.sips.topology": "ring_1d",
    "system.sips.w": None,
    "system.sips.h": None,
    "noc.flow_control": "unlimited",
    "hbm.model": "channels",
}
"""Keys that the oracle does not model have these values."""
AROUND = {"sip.cube_mesh.w": 1, "sip.cube_mesh.h": 3, "cube.noc.cols": 7}
"""Keys with which routes through the cube in the middle pass the hole on either side."""
TIMES = (
    "ucie.overhead_ns",
    "xbar.overhead_ns",
    "cube.noc.router_overhead_ns",
    "cube.sram.overhead_ns",
    "cube.hbm_ctrl.overhead_ns",
    "cube.hbm_ctrl.latency_ns",
    "cube.hbm_ctrl.switch_penalty_ns",
    "pe.dma.overhead_ns",
    "pe.cpu.overhead_ns",
    "pe.scheduler.overhead_ns",
    "pe.mmu.overhead_ns",
)
"""No whole picoseconds in drawn machines, 0 to 2 ns in coarse ones."""
BANDWIDTHS = (
    "ucie.bw_gbs",
    "xbar.to_hbm_bw_gbs",
    "cube.noc.link_bw_gbs",
    "cube.sram_to_router_bw_gbs",
    "pe.to_router_bw_gbs",
    "pe.tcm.bw_gbs",
)
"""Powers of two in coarse machines."""
VARIED = (
    "packet_bytes",
    "hbm.burst_bytes",
    "hbm.num_pcs",
    "xbar.to_hbm_bw_gbs",
    "ucie.bw_gbs",
    "cube.noc.rows",
    "cube.noc.cols",
    "cube.noc.hbm_hole_mm",
    "cube.hbm_ctrl.latency_ns",
    "cube.hbm_ctrl.switch_penalty_ns",
    "pe.tcm.bw_gbs",
)
"""Keys of regular machines of which some are drawn."""


TimedRequest = tuple[int, OracleRequest]
"""A request with the time at which a DMA gets it."""


class DmaCase(NamedTuple):
    """The keys of a machine, and what its PEs load and store."""

    content: dict[str, Any]
    requests: list[TimedRequest]


def drawn_machine(random: Random) -> dict[str, Any]:
    """A machine of which all keys that the oracle reads are drawn."""
    content = with_values(random_content(random), RESTRICTED | _few_places(random))
    times_ns = {key: value_at(content, key) + random.randrange(10_000) / 1e6 for key in TIMES}
    content = with_values(content, {key: round(ns, 6) for key, ns in times_ns.items()})
    assert not refusals(content)
    return content


def regular_machine(random: Random) -> dict[str, Any]:
    """The default machine with other cubes and a few other keys: many times are equal in it."""
    content = with_values(default_content(), RESTRICTED | _few_places(random))
    mesh = {f"sip.cube_mesh.{side}": random.choice((1, 2, 3)) for side in "wh"}
    paths = random.sample(VARIED, random.randint(0, 4))
    other = {path: drawn(path, random, value_at(content, path), (12.0, 12.0)) for path in paths}
    return with_values(content, mesh | other | (AROUND if random.random() < 0.3 else {}))


def coarse_machine(random: Random) -> dict[str, Any]:
    """A machine in which all times are multiples of a quarter of a nanosecond, and few are not
    equal to another one.
    """
    values: dict[str, Any] = {
        "sip.cube_mesh.w": random.choice((1, 2)),
        "sip.cube_mesh.h": random.choice((1, 2)),
        "ns_per_mm": 0.0,
        "packet_bytes": random.choice((64, 128, 256)),
        "control_bytes": random.choice((16, 64)),
        "hbm.burst_bytes": random.choice((64, 128)),
        "hbm.num_pcs": random.choice((1, 2, 4, 8)),
        "hbm.pc_bw_gbs": random.choice((16, 32, 64)),
        "cube.hbm_ctrl.efficiency": 1.0,
    }
    values |= {key: random.choice((0.0, 1.0, 2.0)) for key in TIMES}
    values |= {key: random.choice((64, 128, 256)) for key in BANDWIDTHS}
    content = with_values(default_content(), RESTRICTED | _few_places(random) | values)
    assert not refusals(content)
    return content


def random_requests(
    random: Random, content: dict[str, Any], pes: int, most: int
) -> list[TimedRequest]:
    """Requests, at most `most`, of at most `pes` PEs, most of them for three of the memories."""
    all_pes, memories = _nodes(content)
    used = random.sample(all_pes, min(len(all_pes), pes))
    hot = random.sample(memories, min(len(memories), 3))
    requests = list[TimedRequest]()
    for _ in range(random.randint(1, most)):
        pe = random.choice(used)
        near: list[Node] = [("hbm", *pe[1:]), ("sram", pe[1])]
        memory = random.choice((*hot, random.choice(memories), *near))
        request = OracleRequest(
            pe=pe,
            loads=random.random() < 0.5,
            memory=memory,
            offset=random.choice((0, 256, 4096, random.randint(0, 100_000))),
            nbytes=_size(random, content["packet_bytes"]),
        )
        if random.random() < 0.25:
            request = _in_rows(random, request, content["hbm"])
        requests.append((random.choice((0, 0, 1000, random.randint(0, 300_000))), request))
    return requests


def _in_rows(random: Random, request: OracleRequest, hbm: dict[str, Any]) -> OracleRequest:
    """The request in whole rows with gaps, which lie on all channels or on one."""
    row_bytes = random.choice((1, 32, 100, 128, 1000))
    period = max(row_bytes, hbm["burst_bytes"] * hbm["num_pcs"])
    pitch = random.choice((period, row_bytes + random.randint(1, 3000)))
    nbytes = max(1, request.nbytes // row_bytes) * row_bytes
    return request._replace(nbytes=nbytes, row_bytes=row_bytes, pitch=pitch)


def equal_requests(random: Random, content: dict[str, Any]) -> list[TimedRequest]:
    """All PEs do the same at the same times: to their own slices, to one, to others, to SRAM."""
    pes, _ = _nodes(content)
    requests = list[TimedRequest]()
    for _ in range(random.randint(1, 3)):
        loads, distance, hot = random.random() < 0.5, random.randrange(len(pes)), random.choice(pes)
        time_ps, offset = random.choice((0, 0, 5000)), random.choice((0, random.randint(0, 9999)))
        nbytes, which = _size(random, content["packet_bytes"]), random.randrange(4)
        for number, pe in enumerate(pes):
            other = pes[(number + distance) % len(pes)]
            memories: list[Node] = [("hbm", *each[1:]) for each in (pe, hot, other)]
            memory = [*memories, ("sram", pe[1])][which]
            requests.append((time_ps, OracleRequest(pe, loads, memory, offset, nbytes)))
    return requests


class KernelMove(NamedTuple):
    """A load or a store of a kernel, in the part of a tensor that a PE of the SIP has."""

    loads: bool
    owner: int
    begin: int
    nbytes: int
    waits: bool


def random_kernels(random: Random, content: dict[str, Any], most: int) -> list[list[KernelMove]]:
    """A kernel for each PE: a load of its own part, then at most `most` moves of any part.

    The moves of a kernel have different sizes, by which they are found again. All stores of all
    kernels are to different addresses.
    """
    pes, _ = _nodes(content)
    packet, kernels = content["packet_bytes"], list[list[KernelMove]]()
    for number, _ in enumerate(pes):
        sizes = random.sample(range(1, 3 * packet), random.randint(1, most))
        moves = [KernelMove(True, number, 0, 3 * packet + number, True)]
        for index, nbytes in enumerate(sizes):
            loads, owner = random.random() < 0.5, random.randrange(len(pes))
            stored = 4 + most * number + index
            begin = random.randrange(1000) if loads else stored * 3 * packet
            moves.append(KernelMove(loads, owner, begin, nbytes, random.random() < 0.5))
        kernels.append(moves)
    return kernels


def _few_places(random: Random) -> dict[str, Any]:
    channels, places = random.choice((1, 2, 4, 8)), random.choice((1, 2, 3, 5, 16))
    return {"pe.dma.channels": channels, "pe.dma.outstanding": places}


def _nodes(content: dict[str, Any]) -> tuple[list[Node], list[Node]]:
    """All PEs, and all memories."""
    mesh, layout = content["sip"]["cube_mesh"], content["cube"]["pe_layout"]
    cubes = range(mesh["w"] * mesh["h"])
    numbers = range(len(layout["corners"]) * layout["pe_per_corner"])
    pes: list[Node] = [("pe", cube, number) for cube in cubes for number in numbers]
    return pes, [*(("hbm", *pe[1:]) for pe in pes), *(("sram", cube) for cube in cubes)]


def _size(random: Random, packet: int) -> int:
    return random.choice((1, 64, packet, packet + 1, 2 * packet, random.randint(1, 6 * packet)))
