"""Random variants of the user's topology file: other sizes, floor plans and numbers, by a seed."""

from typing import Any

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import Random
from runtime.model.keys import keys_of_group
from runtime.model.schema.meanings import KeyGroup

# What lies between the SIPs comes last: the order decides which number of the sequence a key gets.
OVERHEADS = sorted(
    (key.path for key in keys_of_group(KeyGroup.DELAY)),
    key=lambda path: path.startswith("system."),
)
BANDWIDTHS = [key.path for key in keys_of_group(KeyGroup.BANDWIDTH)]


def drawn(file: TopologyFile, rng: Random) -> TopologyFile:
    """One variant: each time and each bandwidth x 0.5 to 2, all sizes and positions random.

    Packets are whole rounds of the pseudo channels, for which the closed form of HBM is exact.
    """
    values: dict[str, Any] = {
        # A tenth of a picosecond: overheads are rounded.
        path: round(file[path] * rng.uniform(0.5, 2), 4)
        for path in OVERHEADS
    }
    values |= {path: round(file[path] * rng.uniform(0.5, 2), 1) for path in BANDWIDTHS}
    values["ns_per_mm"] = round(file["ns_per_mm"] * rng.uniform(0.5, 5), 5)
    values["cube.hbm_ctrl.efficiency"] = round(rng.uniform(0.6, 1), 2)
    burst, channels = rng.choice((64, 128, 256)), rng.choice((2, 4, 8))
    values |= {
        "hbm.burst_bytes": burst,
        "hbm.num_pcs": channels,
        "packet_bytes": burst * channels * rng.choice((1, 2, 4)),
    }
    sips = rng.randint(2, 4)
    values["system.sips"] = {
        "count": sips,
        "topology": "ring_1d",
        "fabric": rng.choice(("direct", "switch")),
        "spacing_mm": _mm(rng, 40),
    }
    values["sip.cube_mesh"] = {"w": rng.randint(1, 3), "h": rng.randint(1, 3)}
    values["sip.cube_gap_mm"] = _mm(rng, 3)
    values["sip.io_chiplet.edge"] = rng.choice("NESW")
    values["sip.io_chiplet.gap_mm"] = _mm(rng, 3)
    return file.with_values(values | _floor_plan(rng))


def _floor_plan(rng: Random) -> dict[str, Any]:
    """A cube: its router grid, with or without a hole, and all components at random positions."""
    width, height, rows, cols = (
        rng.randint(6, 14),
        rng.randint(6, 14),
        rng.randint(2, 7),
        rng.randint(2, 7),
    )

    def point() -> list[float]:
        return [_mm(rng, width), _mm(rng, height)]

    return {
        "cube.size_mm": {"w": float(width), "h": float(height)},
        "cube.noc.rows": rows,
        "cube.noc.cols": cols,
        "cube.noc.hbm_hole_mm": _hole(rng, (width, cols), (height, rows)),
        "cube.ucie_pos_mm": {
            "N": [_mm(rng, width), 0.0],
            "S": [_mm(rng, width), float(height)],
            "W": [0.0, _mm(rng, height)],
            "E": [float(width), _mm(rng, height)],
        },
        "cube.m_cpu.pos_mm": point(),
        "cube.sram.pos_mm": point(),
        "cube.pe_layout": {
            "pe_per_corner": 2,
            "corners": ["NW", "SE"],
            "pos_mm": {"NW": [point(), point()], "SE": [point(), point()]},
        },
    }


def _hole(rng: Random, *sides: tuple[int, int]) -> list[float]:
    """A hole with routers on all sides of it; none if the grid is too small for one."""
    spans: list[tuple[float, float]] = []
    for length, routers in sides:
        if routers < 3:
            return [0.0, 0.0, 0.0, 0.0]
        # Not the first and not the last router: each side needs routers for detours.
        first = rng.randint(1, routers - 2)
        last = rng.randint(first, routers - 2)
        spans.append((_floor(first * length / routers), _floor((last + 1) * length / routers)))
    (x0, x1), (y0, y1) = spans
    return [x0, y0, x1, y1]


def _floor(mm: float) -> float:
    return int(mm * 1000) / 1000


def _mm(rng: Random, limit: float) -> float:
    return rng.randint(0, int(limit * 10)) / 10
