"""Random machines of one SIP, and random loads and stores of their PEs, for the oracle."""

from random import Random
from typing import Any, NamedTuple

from runtime.core.config_file import value_at, with_values
from tests.oracle.machine import DmaRequest
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
"""What the oracle does not model has these values."""
VARIED = (
    "packet_bytes",
    "hbm.burst_bytes",
    "hbm.num_pcs",
    "xbar.to_hbm_bw_gbs",
    "ucie.bw_gbs",
    "cube.noc.hbm_hole_mm",
    "cube.hbm_ctrl.latency_ns",
    "cube.hbm_ctrl.switch_penalty_ns",
    "pe.tcm.bw_gbs",
)
"""Keys of regular machines of which some are drawn."""


class DmaCase(NamedTuple):
    """The keys of a machine, and what its PEs load and store."""

    content: dict[str, Any]
    requests: list[DmaRequest]


def drawn_machine(random: Random) -> dict[str, Any]:
    """A machine of which all keys that the oracle reads are drawn."""
    content = with_values(random_content(random), RESTRICTED | _few_places(random))
    assert not refusals(content)
    return content


def regular_machine(random: Random) -> dict[str, Any]:
    """The default machine with other cubes and a few other keys: many times are equal in it."""
    content = with_values(default_content(), RESTRICTED | _few_places(random))
    mesh = {f"sip.cube_mesh.{side}": random.choice((1, 2, 3)) for side in "wh"}
    paths = random.sample(VARIED, random.randint(0, 4))
    other = {path: drawn(path, random, value_at(content, path), (12.0, 12.0)) for path in paths}
    return with_values(content, mesh | other)


def random_requests(
    random: Random, content: dict[str, Any], pes: int, most: int
) -> list[DmaRequest]:
    """At most `most` requests of at most `pes` PEs, most of them for three of the memories."""
    all_pes, memories = _nodes(content)
    used = random.sample(all_pes, min(len(all_pes), pes))
    hot = random.sample(memories, min(len(memories), 3))
    requests = list[DmaRequest]()
    for _ in range(random.randint(1, most)):
        pe = random.choice(used)
        memory = random.choice((*hot, random.choice(memories), ("hbm", *pe[1:])))
        requests.append(
            DmaRequest(
                time_ps=random.choice((0, 0, 1000, random.randint(0, 300_000))),
                pe=pe,
                loads=random.random() < 0.5,
                memory=memory,
                offset=random.choice((0, 256, 4096, random.randint(0, 100_000))),
                nbytes=_size(random, content["packet_bytes"]),
            )
        )
    return requests


def equal_requests(random: Random, content: dict[str, Any]) -> list[DmaRequest]:
    """All PEs do the same at the same times: to their own slices, to one, to others, to SRAM."""
    pes, _ = _nodes(content)
    requests = list[DmaRequest]()
    for _ in range(random.randint(1, 3)):
        loads, distance, hot = random.random() < 0.5, random.randrange(len(pes)), random.choice(pes)
        time_ps, offset = random.choice((0, 0, 5000)), random.choice((0, random.randint(0, 9999)))
        nbytes, which = _size(random, content["packet_bytes"]), random.randrange(4)
        for number, pe in enumerate(pes):
            other = pes[(number + distance) % len(pes)]
            memories: list[Node] = [("hbm", *each[1:]) for each in (pe, hot, other)]
            memory = [*memories, ("sram", pe[1])][which]
            requests.append(DmaRequest(time_ps, pe, loads, memory, offset, nbytes))
    return requests


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
