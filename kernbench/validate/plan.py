"""The parts of `validate`: each yields some checks, in any process; the order of rows is fixed."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from kernbench.points.driver import (
    IN_THIS_PROCESS,
    PointMeasurement,
    PointOptions,
    completed_points,
)
from kernbench.points.progress import point_progress
from kernbench.points.task import PointFault
from kernbench.theory.all_reduce_times import ALL_REDUCE_FORMS
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.algorithms import algorithm
from kernbench.validate.banks import banks
from kernbench.validate.barriers import barriers
from kernbench.validate.channels import channels
from kernbench.validate.check import Check
from kernbench.validate.collectives import credit_rounds, sums
from kernbench.validate.conservation import conservation
from kernbench.validate.contention import contention
from kernbench.validate.credited_routes import credit_loops, credited_routes
from kernbench.validate.cube_links import cube_links
from kernbench.validate.dma_requests import dma
from kernbench.validate.drawn_all_reduces import ALGORITHMS, drawn
from kernbench.validate.equal_parts import equal_parts
from kernbench.validate.gathers import gathers
from kernbench.validate.gemm import bounded, fed, padded, staged, systolic
from kernbench.validate.grids import grids
from kernbench.validate.head_times import head_times
from kernbench.validate.hypercubes import hypercubes
from kernbench.validate.launch_paths import launch_paths
from kernbench.validate.launches import TOPOLOGIES as LAUNCH_TOPOLOGIES
from kernbench.validate.launches import launches
from kernbench.validate.meeting_flows import meeting_flows
from kernbench.validate.memory_rows import memory_rows
from kernbench.validate.memory_turns import memory_turns
from kernbench.validate.mesh_checks import (
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
from kernbench.validate.mesh_patterns import patterns
from kernbench.validate.mesh_router_patterns import pattern_latency, pattern_loads
from kernbench.validate.messages import TOPOLOGIES as MESSAGE_TOPOLOGIES
from kernbench.validate.messages import messages
from kernbench.validate.metamorphic import metamorphic
from kernbench.validate.moves import moves
from kernbench.validate.numerics import numerics
from kernbench.validate.overlapped_blocks import overlapped_blocks
from kernbench.validate.paths import TOPOLOGIES, saturation, uncontended
from kernbench.validate.pipelines import pipelines
from kernbench.validate.queueing import FULL_LOADS, LOADS, little, waiting
from kernbench.validate.receive_order import receive_order
from kernbench.validate.rings import rings
from kernbench.validate.route_links import credited_links, route_links
from kernbench.validate.sharing import sharing
from kernbench.validate.slot_rates import rates
from kernbench.validate.tile_buffers import buffers
from kernbench.validate.tori import GRIDS, torus
from kernbench.validate.tree_pipelines import RUNS, tree_pipelines
from kernbench.validate.vector_chains import chains, chains_in_flight
from kernbench.validate.vector_meetings import epilogues, meetings
from kernbench.validate.vector_times import by_bound, by_function, by_size

SIPS = 2
"""Checks between SIPs run on a ring of two: the closed forms depend on no larger system."""


@dataclass(frozen=True)
class Part:
    """Checks whose ids all start with `prefix`: the result of `function(file, *args)`."""

    prefix: str
    function: Callable[..., list[Check]]
    args: tuple[float | str, ...] = ()

    def __str__(self) -> str:
        return f"{self.prefix}*"

    @property
    def cost(self) -> int:
        """Estimated work: those of group e are the long ones."""
        return 10 if self.prefix.startswith("e") else 1

    def may_match(self, prefix: str) -> bool:
        """Whether a check of this part can have an id that starts with `prefix`."""
        return self.prefix.startswith(prefix) or prefix.startswith(self.prefix)


def parts(seed: int, *, full: bool) -> list[Part]:
    """All parts, in the order of the rows."""
    # Parts are as small as the checks allow, so that processes share them evenly.
    return [*_transfers(seed, full=full), *_systems(seed), *_kernels(seed)]


def _transfers(seed: int, *, full: bool) -> Iterator[Part]:
    """Groups a to e: routes, links and routers."""
    for number in range(TOPOLOGIES + 1):
        yield Part(f"a.{number}.", uncontended, (seed, number))
    yield Part("b.", saturation)
    yield Part("c.", sharing)
    yield Part("c.kernels.", contention)
    for load, (arrivals, tolerance) in (FULL_LOADS if full else LOADS).items():
        yield Part(f"d.{load}.", waiting, (seed, load, arrivals, tolerance))
    yield Part("e.zero-load.", unloaded)
    yield Part("e.fifo.", patterns, (seed,))
    for load in sorted(reference()) if full else DEFAULT_LOADS:
        yield Part(f"e.uniform.{load}.", loaded, (seed, load))
    for stages in (1, 2, 3, 4):
        yield Part(f"e.credits.{stages}.", router_unloaded, (stages,))
    yield Part("e.route.", credited_routes)
    yield Part("e.loop.", credit_loops)
    for name, load, times in router_loads(full=full):
        yield Part(f"e.{name}.{load}.latency", router_latency, (seed, name, load, times))
    for name, pattern, load, cycles in pattern_loads(full=full):
        prefix = f"e.pattern.{name}.{pattern}.{load}"
        yield Part(prefix, pattern_latency, (seed, name, pattern, load, cycles))
    for name in ("r1", "r2"):
        for load in STABILITY_LOADS:
            yield Part(f"e.{name}.{load}.stable", router_stability, (seed, name, load))


def _systems(seed: int) -> Iterator[Part]:
    """Groups f to i: whole runs, memories, queues and collectives."""
    yield Part("f.", conservation)
    yield Part("f.little", little, (seed,))
    yield Part("g.", metamorphic, (seed,))
    yield Part("h.", channels)
    yield Part("h.banks.", banks)
    yield Part("h.", memory_turns)
    yield Part("h.rows.", memory_rows)
    yield Part("i.credit.", credit_rounds)
    yield Part("i.rate.", rates)
    yield Part("i.ring.", rings)
    for name in GRIDS:
        yield Part(f"i.torus.{name}.", torus, (seed, name))
    for name in RUNS:
        yield Part(f"i.pipeline.{name}.", tree_pipelines, (seed, name))
    for name in ALL_REDUCE_FORMS:
        yield Part(f"i.{name}.", algorithm, (seed, name))
    yield Part("i.blocks.", overlapped_blocks)
    yield Part("i.cubes.", cube_links)
    yield Part("i.moves.", moves)
    yield Part("i.hypercube.", hypercubes)
    for name in ALGORITHMS:
        yield Part(f"i.drawn.{name}.", drawn, (seed, name))
    yield Part("i.sums.", sums, (seed,))


def _kernels(seed: int) -> Iterator[Part]:
    """Groups j to v: engines, launches, messages, and the order of service."""
    yield Part("j.b", bounded, (seed,))
    yield Part("j.staged.", staged)
    yield Part("j.buffers.", buffers)
    yield Part("j.fed.", fed)
    yield Part("j.pad.", padded)
    yield Part("j.systolic.", systolic, (seed,))
    yield Part("j.pipeline.", pipelines, (seed,))
    yield Part("k.", numerics, (seed,))
    for number in range(LAUNCH_TOPOLOGIES + 1):
        yield Part(f"l.{number}.", launches, (seed, number))
        yield Part(f"l.{number}.", launch_paths, (seed, number))
    yield Part("l.grid.", grids)
    yield Part("l.barrier.", barriers)
    for number in range(MESSAGE_TOPOLOGIES + 1):
        yield Part(f"m.{number}.", messages, (seed, number))
    yield Part("n.meet.", meeting_flows)
    yield Part("n.head.", head_times)
    yield Part("n.receive.", receive_order)
    yield Part("n.equal.", equal_parts)
    yield Part("q.", dma)
    yield Part("q.gather.", gathers)
    yield Part("r.route.", route_links)
    yield Part("r.link.", credited_links)
    yield Part("v.", by_function)
    yield Part("v.size.", by_size)
    yield Part("v.bound.", by_bound, (seed,))
    yield Part("v.chain.", chains, (seed,))
    yield Part("v.flight.", chains_in_flight)
    yield Part("v.meet.", meetings)
    yield Part("v.epilogue.", epilogues)


def run(
    text: str,
    chosen: Sequence[Part],
    prefix: str,
    options: PointOptions = IN_THIS_PROCESS,
    *,
    fail_fast: bool = False,
) -> Generator[Check]:
    """The checks of the chosen parts whose ids start with `prefix`, on the topology file `text`, in
    the order of the parts; each as soon as it and those before it are known.

    The result does not depend on `options`, unless `fail_fast` ends the run behind the first part
    with a check that is out of tolerance: then it has the checks of the parts that are complete. A
    part that ends with an error has one check, which is missed.
    """
    measurement = PointMeasurement(
        partial(_checks, text, prefix=prefix), list[Check], "parts", _count_of_checks
    )
    found = dict[Part, Sequence[Check]]()
    shown = 0
    with (
        point_progress(chosen, 0, measurement.noun) as progress,
        closing(completed_points(measurement, chosen, options, progress)) as results,
    ):
        for part, result in results:
            found[part] = [_failed(result)] if isinstance(result, PointFault) else result
            progress.completed(part, _count_of_checks(found[part]))
            while shown < len(chosen) and chosen[shown] in found:
                yield from found[chosen[shown]]
                shown += 1
            if fail_fast and missed(found[part]):
                break
    for part in chosen[shown:]:
        yield from found.get(part, ())


def _failed(fault: PointFault) -> Check:
    return Check(
        id=fault.point.removesuffix("*"),
        text=f"no result: {fault.reason}",
        formula="one result",
        expected=1,
        measured=0,
        unit="results",
    )


def _count_of_checks(checks: Sequence[Check]) -> str:
    wrong = len(missed(checks))
    text = f"{len(checks)} checks" if len(checks) != 1 else "1 check"
    return f"{text}, {wrong} MISSED" if wrong else text


def _checks(text: str, part: Part, prefix: str) -> list[Check]:
    # Closed forms need calendars: in model `banks` a time depends on the accesses before, and with
    # credits on the clock of the routers. Both have checks of their own, which set these keys.
    calendars = {"hbm.model": "channels", "noc.flow_control": "unlimited"}
    file = TopologyFile.of(text).on_a_ring(SIPS).with_values(calendars)
    found = part.function(file, *part.args)
    return [check for check in found if check.id.startswith(prefix)]


def missed(checks: Iterable[Check]) -> list[Check]:
    """The checks that are out of tolerance."""
    return [check for check in checks if not check.passed]
