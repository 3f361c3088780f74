"""Parts of checks on machines of their own: fixed ones, and random variants of a topology file.

They have the form of the parts of `kernbench validate`, and run on the same topology file. What
they find depends on the simulator alone: each sets the numbers that decide, or draws them. So a
user's file needs none of them, and they are tests.
"""

from collections.abc import Iterator

from kernbench.oracle.checks.check import GROUPS
from kernbench.oracle.checks.plan import Part, parts
from tests.fidelity.collectives.cube_links import cube_links
from tests.fidelity.collectives.drawn_all_reduces import ALGORITHMS, drawn
from tests.fidelity.collectives.hypercubes import hypercubes
from tests.fidelity.collectives.moves import moves
from tests.fidelity.collectives.tori import GRIDS, torus
from tests.fidelity.collectives.tree_pipelines import RUNS, tree_pipelines
from tests.fidelity.engines.numerics import numerics
from tests.fidelity.engines.pipelines import pipelines
from tests.fidelity.engines.systolic import systolic
from tests.fidelity.engines.tile_buffers import buffers
from tests.fidelity.engines.vector_meetings import epilogues, meetings
from tests.fidelity.machines.metamorphic import metamorphic
from tests.fidelity.machines.variants import (
    ACCESS_VARIANTS,
    LAUNCH_VARIANTS,
    drawn_accesses,
    drawn_chains,
    drawn_launch_paths,
    drawn_launches,
    drawn_messages,
    drawn_streams,
)
from tests.fidelity.mesh.mesh_checks import (
    DEFAULT_LOADS,
    STABILITY_LOADS,
    loaded,
    reference,
    router_latency,
    router_loads,
    router_stability,
    router_unloaded,
    unloaded,
)
from tests.fidelity.mesh.mesh_patterns import patterns
from tests.fidelity.mesh.mesh_router_patterns import pattern_latency, pattern_loads
from tests.fidelity.service.atomics import atomics
from tests.fidelity.service.dma_requests import dma
from tests.fidelity.service.gathers import gathers
from tests.fidelity.service.head_times import head_times
from tests.fidelity.service.meeting_flows import meeting_flows
from tests.fidelity.service.memory_rows import memory_rows
from tests.fidelity.service.memory_turns import memory_turns
from tests.fidelity.service.queueing import FULL_LOADS, LOADS, little, waiting
from tests.fidelity.service.receive_order import receive_order
from tests.fidelity.service.recorded_waits import recorded_waits
from tests.fidelity.service.route_bytes import route_bytes

MESH_COST = 10
"""Estimated work of a load of the mesh, in that of another part."""
TITLES = dict(
    sorted(
        (
            GROUPS
            | {
                "d": "one link as an M/D/1 queue",
                "e": "routers: a 4x4 mesh against BookSim 2; whole routes with credits",
                "g": "metamorphic: changes which must not change a result, or must halve it",
                "k": "numerics of the kernel language, and independence of times from data",
                "q": "the DMA engine: packets in flight, turns, channels, the port of TCM",
                "w": "waits that a run records: at links, memories, ports, in products and chains",
            }
        ).items()
    )
)
"""The groups of all checks, by the first letter of their ids."""


def every_part(seed: int, *, full: bool = False) -> list[Part]:
    """The parts of `validate` and those below, group by group."""
    both = [*parts(seed), *fixed_parts(seed, full=full)]
    return sorted(both, key=lambda part: part.prefix[0])


def fixed_parts(seed: int, *, full: bool = False) -> list[Part]:
    """All parts on machines of their own; `full` has all loads of the references of the mesh."""
    return [*_variants(seed), *_links(seed, full=full), *_mesh(seed, full=full), *_engines(seed)]


def _variants(seed: int) -> Iterator[Part]:
    """Checks of `validate` on random machines; changes of whole files; random all-reduces."""
    for number in range(1, ACCESS_VARIANTS + 1):
        yield Part(f"a.{number}.", drawn_accesses, (seed, number))
    yield Part("g.", metamorphic, (seed,))
    for name in GRIDS:
        yield Part(f"i.torus.{name}.", torus, (seed, name))
    for name in RUNS:
        yield Part(f"i.pipeline.{name}.", tree_pipelines, (seed, name))
    yield Part("i.cubes.", cube_links)
    yield Part("i.moves.", moves)
    yield Part("i.hypercube.", hypercubes)
    for name in ALGORITHMS:
        yield Part(f"i.drawn.{name}.", drawn, (seed, name))
    for number in range(1, LAUNCH_VARIANTS + 1):
        yield Part(f"l.{number}.", drawn_launches, (seed, number))
        yield Part(f"l.{number}.", drawn_launch_paths, (seed, number))
        yield Part(f"m.{number}.", drawn_messages, (seed, number))
    yield Part("v.bound.drawn.", drawn_streams, (seed,))
    yield Part("v.chain.drawn.", drawn_chains, (seed,))


def _links(seed: int, *, full: bool) -> Iterator[Part]:
    """The service of one link, memory, port or queue, and the routes of a cube and of a grid."""
    for load, (arrivals, tolerance) in (FULL_LOADS if full else LOADS).items():
        yield Part(f"d.{load}.", waiting, (seed, load, arrivals, tolerance))
    yield Part("f.little", little, (seed,))
    yield Part("h.", memory_turns)
    yield Part("h.rows.", memory_rows)
    yield Part("n.meet.", meeting_flows)
    yield Part("n.head.", head_times)
    yield Part("n.receive.", receive_order)
    yield Part("q.", dma)
    yield Part("q.gather.", gathers)
    yield Part("q.atomic.", atomics)
    yield Part("r.route.", route_bytes)
    yield Part("w.", recorded_waits)


def _mesh(seed: int, *, full: bool) -> Iterator[Part]:
    """Routers of a 4x4 mesh."""
    yield Part("e.zero-load.", unloaded)
    yield Part("e.fifo.", patterns, (seed,), MESH_COST)
    for load in sorted(reference()) if full else DEFAULT_LOADS:
        yield Part(f"e.uniform.{load}.", loaded, (seed, load), MESH_COST)
    for stages in (1, 2, 3, 4):
        yield Part(f"e.credits.{stages}.", router_unloaded, (stages,))
    for name, load, times in router_loads(full=full):
        yield Part(f"e.{name}.{load}.latency", router_latency, (seed, name, load, times), MESH_COST)
    for name, pattern, load, cycles in pattern_loads(full=full):
        prefix = f"e.pattern.{name}.{pattern}.{load}"
        yield Part(prefix, pattern_latency, (seed, name, pattern, load, cycles), MESH_COST)
    for name in ("r1", "r2"):
        for load in STABILITY_LOADS:
            yield Part(f"e.{name}.{load}.stable", router_stability, (seed, name, load), MESH_COST)


def _engines(seed: int) -> Iterator[Part]:
    """Engines of a PE with numbers of their own, and the results of the kernel language."""
    yield Part("j.buffers.", buffers)
    yield Part("j.systolic.", systolic, (seed,))
    yield Part("j.pipeline.", pipelines, (seed,))
    yield Part("k.", numerics, (seed,))
    yield Part("v.meet.", meetings)
    yield Part("v.epilogue.", epilogues)
