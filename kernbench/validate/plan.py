"""The parts of `validate`: each yields some checks, in any process; the order of rows is fixed."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from kernbench.theory.all_reduce_times import ALL_REDUCE_FORMS
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.algorithms import algorithm
from kernbench.validate.banks import banks
from kernbench.validate.channels import channels
from kernbench.validate.check import Check
from kernbench.validate.collectives import credit_rounds, sums
from kernbench.validate.conservation import conservation
from kernbench.validate.contention import contention
from kernbench.validate.cube_links import cube_links
from kernbench.validate.dma_requests import dma
from kernbench.validate.drawn_all_reduces import ALGORITHMS, drawn
from kernbench.validate.equal_parts import equal_parts
from kernbench.validate.gemm import bounded, fed, padded, staged, systolic
from kernbench.validate.head_times import head_times
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
from kernbench.validate.messages import TOPOLOGIES as MESSAGE_TOPOLOGIES
from kernbench.validate.messages import messages
from kernbench.validate.metamorphic import metamorphic
from kernbench.validate.moves import moves
from kernbench.validate.numerics import numerics
from kernbench.validate.paths import TOPOLOGIES, saturation, uncontended
from kernbench.validate.pipelines import pipelines
from kernbench.validate.queueing import FULL_LOADS, LOADS, little, waiting
from kernbench.validate.receive_order import receive_order
from kernbench.validate.rings import rings
from kernbench.validate.sharing import sharing
from kernbench.validate.slot_rates import rates
from kernbench.validate.tile_buffers import buffers
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

    def may_match(self, prefix: str) -> bool:
        """Whether a check of this part can have an id that starts with `prefix`."""
        return self.prefix.startswith(prefix) or prefix.startswith(self.prefix)


def parts(seed: int, *, full: bool) -> list[Part]:
    """All parts, in the order of the rows."""
    # Parts are as small as the checks allow, so that processes share them evenly.
    loads = sorted(reference()) if full else DEFAULT_LOADS
    return [
        *(Part(f"a.{number}.", uncontended, (seed, number)) for number in range(TOPOLOGIES + 1)),
        Part("b.", saturation),
        Part("c.", sharing),
        Part("c.kernels.", contention),
        *(
            Part(f"d.{load}.", waiting, (seed, load, arrivals, tolerance))
            for load, (arrivals, tolerance) in (FULL_LOADS if full else LOADS).items()
        ),
        Part("e.zero-load.", unloaded),
        Part("e.fifo.", patterns, (seed,)),
        *(Part(f"e.uniform.{load}.", loaded, (seed, load)) for load in loads),
        *(Part(f"e.credits.{stages}.", router_unloaded, (stages,)) for stages in (1, 2, 3, 4)),
        *(
            Part(f"e.{name}.{load}.latency", router_latency, (seed, name, load, times))
            for name, load, times in router_loads(full=full)
        ),
        *(
            Part(f"e.{name}.{load}.stable", router_stability, (seed, name, load))
            for name in ("r1", "r2")
            for load in STABILITY_LOADS
        ),
        Part("f.", conservation),
        Part("f.little", little, (seed,)),
        Part("g.", metamorphic, (seed,)),
        Part("h.", channels),
        Part("h.banks.", banks),
        Part("h.", memory_turns),
        Part("h.rows.", memory_rows),
        Part("i.credit.", credit_rounds),
        Part("i.rate.", rates),
        Part("i.ring.", rings),
        *(Part(f"i.{name}.", algorithm, (seed, name)) for name in ALL_REDUCE_FORMS),
        Part("i.cubes.", cube_links),
        Part("i.moves.", moves),
        *(Part(f"i.drawn.{name}.", drawn, (seed, name)) for name in ALGORITHMS),
        Part("i.sums.", sums, (seed,)),
        Part("j.b", bounded, (seed,)),
        Part("j.staged.", staged),
        Part("j.buffers.", buffers),
        Part("j.fed.", fed),
        Part("j.pad.", padded),
        Part("j.systolic.", systolic, (seed,)),
        Part("j.pipeline.", pipelines, (seed,)),
        Part("k.", numerics, (seed,)),
        *(
            Part(f"l.{number}.", function, (seed, number))
            for number in range(LAUNCH_TOPOLOGIES + 1)
            for function in (launches, launch_paths)
        ),
        *(
            Part(f"m.{number}.", messages, (seed, number))
            for number in range(MESSAGE_TOPOLOGIES + 1)
        ),
        Part("n.meet.", meeting_flows),
        Part("n.head.", head_times),
        Part("n.receive.", receive_order),
        Part("n.equal.", equal_parts),
        Part("q.", dma),
        Part("v.", by_function),
        Part("v.size.", by_size),
        Part("v.bound.", by_bound, (seed,)),
        Part("v.meet.", meetings),
        Part("v.epilogue.", epilogues),
    ]


def run(
    text: str, chosen: Sequence[Part], prefix: str, procs: int, *, fail_fast: bool = False
) -> list[Check]:
    """The checks of the chosen parts whose ids start with `prefix`, on the topology file `text`.

    With `procs` 1, all run in this process. The result does not depend on `procs`, unless
    `fail_fast` ends the run behind the first part with a check that is out of tolerance: then it
    has the checks of the parts that are complete.
    """
    if procs == 1:
        found = _in_this_process(text, chosen, prefix, fail_fast=fail_fast)
    else:
        # Fresh interpreters: a fork of a process with threads inherits locks which no thread
        # releases.
        with ProcessPoolExecutor(procs, mp_context=get_context("spawn")) as pool:
            futures = _submitted(pool, text, chosen, prefix)
            for future in as_completed(futures) if fail_fast else ():
                if missed(future.result()):
                    pool.shutdown(cancel_futures=True)
                    break
            found = [future.result() for future in futures if not future.cancelled()]
    return [check for checks in found for check in checks]


def _in_this_process(
    text: str, chosen: Sequence[Part], prefix: str, *, fail_fast: bool
) -> list[list[Check]]:
    found: list[list[Check]] = []
    for part in chosen:
        found.append(_checks(text, part, prefix))
        if fail_fast and missed(found[-1]):
            break
    return found


def _submitted(
    pool: ProcessPoolExecutor, text: str, chosen: Sequence[Part], prefix: str
) -> list[Future[list[Check]]]:
    """Futures in the order of the parts; the long parts, group e, start first."""
    futures: dict[int, Future[list[Check]]] = {}
    for part in sorted(chosen, key=lambda part: not part.prefix.startswith("e")):
        futures[id(part)] = pool.submit(_checks, text, part, prefix)
    return [futures[id(part)] for part in chosen]


def _checks(text: str, part: Part, prefix: str) -> list[Check]:
    # In model `banks` a time depends on the accesses before: its own part checks it.
    file = TopologyFile.of(text).on_a_ring(SIPS).with_values({"hbm.model": "channels"})
    found = part.function(file, *part.args)
    return [check for check in found if check.id.startswith(prefix)]


def missed(checks: Iterable[Check]) -> list[Check]:
    """The checks that are out of tolerance."""
    return [check for check in checks if not check.passed]
