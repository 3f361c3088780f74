"""The parts of `validate`: each yields some checks, in any process; the order of rows is fixed."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.algorithms import algorithm, sums_on_file
from kernbench.oracle.checks.collectives.overlapping import overlapped_blocks, rings
from kernbench.oracle.checks.collectives.queue_pairs import credit_rounds, rates
from kernbench.oracle.checks.engines.gemm import bounded, fed, padded, staged
from kernbench.oracle.checks.engines.vector_chains import chains, chains_in_flight
from kernbench.oracle.checks.engines.vector_times import by_bound, by_function, by_size
from kernbench.oracle.checks.launches.barriers import barriers
from kernbench.oracle.checks.launches.grids import grids
from kernbench.oracle.checks.launches.launch_paths import launch_paths
from kernbench.oracle.checks.launches.launches import launches
from kernbench.oracle.checks.launches.messages import messages
from kernbench.oracle.checks.systems.conservation import conservation
from kernbench.oracle.checks.systems.equal_parts import equal_parts
from kernbench.oracle.checks.systems.own_parts import own_parts
from kernbench.oracle.checks.systems.sip_links import credited_links
from kernbench.oracle.checks.transfers.banks import banks
from kernbench.oracle.checks.transfers.channels import channels
from kernbench.oracle.checks.transfers.contention import contention
from kernbench.oracle.checks.transfers.credited_routes import credit_loops, credited_routes
from kernbench.oracle.checks.transfers.paths import saturation, uncontended
from kernbench.oracle.checks.transfers.sharing import sharing
from kernbench.oracle.theory.collectives.all_reduce_times import ALL_REDUCE_FORMS
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.points.driver import (
    IN_THIS_PROCESS,
    PointMeasurement,
    PointOptions,
    completed_points,
)
from kernbench.points.progress import point_progress
from kernbench.points.task import PointFault

SIPS = 2
"""Checks between SIPs run on a ring of two: the closed forms depend on no larger system."""


@dataclass(frozen=True)
class Part:
    """Checks whose ids all start with `prefix`: the result of `function(file, *args)`."""

    prefix: str
    function: Callable[..., list[Check]]
    args: tuple[float | str, ...] = ()
    cost: int = 1
    """Estimated work, in any unit."""
    with_overrides: bool = False
    """Whether the file keeps its overrides; the machines of other checks have equal parts."""

    def __str__(self) -> str:
        return f"{self.prefix}*"

    def may_match(self, prefix: str) -> bool:
        """Whether a check of this part can have an id that starts with `prefix`."""
        return self.prefix.startswith(prefix) or prefix.startswith(self.prefix)


def parts(seed: int) -> list[Part]:
    """All parts, in the order of the rows."""
    # Parts are as small as the checks allow, so that processes share them evenly.
    return [*_systems(seed), *_kernels(seed)]


def _systems(seed: int) -> Iterator[Part]:
    """Groups a to i: routes, whole runs, memories, queues and collectives."""
    yield Part("a.0.", uncontended, (seed,))
    yield Part("b.", saturation)
    yield Part("c.", sharing)
    yield Part("c.kernels.", contention)
    yield Part("e.route.", credited_routes)
    yield Part("e.loop.", credit_loops)
    yield Part("f.", conservation)
    yield Part("h.", channels)
    yield Part("h.banks.", banks)
    yield Part("i.credit.", credit_rounds)
    yield Part("i.rate.", rates)
    yield Part("i.ring.", rings)
    for name in ALL_REDUCE_FORMS:
        yield Part(f"i.{name}.", algorithm, (seed, name))
    yield Part("i.blocks.", overlapped_blocks)
    yield Part("i.sums.", sums_on_file, (seed,))


def _kernels(seed: int) -> Iterator[Part]:
    """Groups j to v: engines, launches, messages, equal parts, links between SIPs."""
    yield Part("j.b", bounded, (seed,))
    yield Part("j.staged.", staged)
    yield Part("j.fed.", fed)
    yield Part("j.pad.", padded)
    yield Part("l.0.", launches)
    yield Part("l.0.", launch_paths)
    yield Part("l.grid.", grids)
    yield Part("l.barrier.", barriers)
    yield Part("m.0.", messages, (seed,))
    yield Part("n.equal.", equal_parts)
    yield Part("p.", own_parts, with_overrides=True)
    yield Part("r.link.", credited_links)
    yield Part("v.", by_function)
    yield Part("v.size.", by_size)
    yield Part("v.bound.", by_bound)
    yield Part("v.chain.", chains)
    yield Part("v.flight.", chains_in_flight)


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
    by_part = dict[Part, Sequence[Check]]()
    shown = 0
    with (
        point_progress(chosen, 0, measurement.noun) as progress,
        closing(completed_points(measurement, chosen, options, progress)) as results,
    ):
        for part, result in results:
            by_part[part] = [_failed(result)] if isinstance(result, PointFault) else result
            progress.completed(part, _count_of_checks(by_part[part]))
            while shown < len(chosen) and chosen[shown] in by_part:
                yield from by_part[chosen[shown]]
                shown += 1
            if fail_fast and missed(by_part[part]):
                break
    for part in chosen[shown:]:
        yield from by_part.get(part, ())


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
    file = TopologyFile.of(text).with_values(calendars)
    if not part.with_overrides:
        # On a smaller machine, parts would have no names.
        file = file.uniform.on_a_ring(SIPS)
    checks = part.function(file, *part.args)
    return [check for check in checks if check.id.startswith(prefix)]


def missed(checks: Iterable[Check]) -> list[Check]:
    """The checks that are out of tolerance."""
    return [check for check in checks if not check.passed]
