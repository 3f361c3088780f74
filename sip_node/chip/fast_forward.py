"""Exact fast-forward of matrix products: whole periods of their pipelines are computed at once.

A product alone with its PE, its memory slice and its links is a closed machine, and soon a periodic
one: the state in which it begins an output tile recurs some tiles later, at a later time. What
follows is known until the next event of another component. So the periods up to that event are
computed, not simulated:

    marks      |----------|----------|----------|-- - - - - - - - - - - --|----------| x
               read the state at each;            records, sums and bytes    simulated:
               two are equal: that is a period    of whole periods          x uses the slice

The state is that of all products of the LP together, with the order of their events, so several in
step are one machine. It is read between two events (`ProductWalk`), and the same walk moves it by
whole periods. The records of the period are the templates of those of the later ones
(`SkippedSteps`). Times, counters, op log, memories and the number of events are those of the
simulated run, to the bit.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import Gemm, finish
from runtime.model.jitter import links_have_jitter
from runtime.model.schema.topology_schema import Implementations, Topology
from runtime.model.tiles import TilePlan
from runtime.wire.environment import fast_forward_requested
from sip_node.chip.completion import Completion
from sip_node.chip.mapping.strided_block import end_of
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.time_bins import ServiceTemplate, TimeBins
from sip_node.pdes.engine import Engine

if TYPE_CHECKING or IS_COMPILED:
    from sip_node.compiled.pipeline import Pipeline
    from sip_node.compiled.product_walk import ProductWalk
    from sip_node.compiled.skipped_steps import (
        PeriodBegin,
        RecordOfStep,
        SkippedSteps,
        emit_periods,
    )
    from sip_node.compiled.state_walk import NotClosed, StateVector

LEAST_STEPS = 64
"""Shorter products end before a period has passed twice."""
MOST_PRODUCTS = 16
"""More at once are simulated: reading the state of all takes longer than their steps."""
MOST_MARKS = 64
"""The states that are compared. Then as many marks pass as there were, until the next attempt."""


class ProductParts(NamedTuple):
    """The parts that products on a PE pass: its engines, which are in C, and what these share."""

    topology: Topology
    log: OpLog
    locate: Callable[[int], tuple[int, int]]
    fabric: Any
    dma: Any
    load: Any
    fetch: Any
    gemm: Any
    store: Any
    buffers: Any


class TiledProduct(Protocol):
    """A product in flight."""

    @property
    def gemm(self) -> Gemm:
        """The operands and the result."""
        ...

    @property
    def plan(self) -> TilePlan:
        """The steps and tiles of the product."""
        ...

    @property
    def done(self) -> Completion[None]:
        """The completion of the product."""
        ...

    def blocks(self) -> tuple[list[Operand], list[Operand]]:
        """The blocks of memory from which it streams operands, and those of its result."""
        ...


class _Submitted(NamedTuple):
    parts: ProductParts
    composite: TiledProduct
    # Of its steps, in C.
    source: Any


class _Mark(NamedTuple):
    """A state that may recur: when it was read, and how many records each log had then.

    In a run with records, `services` is how many services each server had logged.
    """

    number: int
    state: "StateVector"
    begins: "list[PeriodBegin]"
    records: list[int]
    services: list[int]
    foreign_ps: int


class _Period(NamedTuple):
    """A period: the states at both ends, its records by log, the steps that repeat by product, and
    in a run with records the services of each server.
    """

    first: "StateVector"
    second: "StateVector"
    marks: int
    last: int
    templates: "list[list[RecordOfStep]]"
    alike: list[int]
    services: "list[ServiceTemplate]"


class FastForward:
    """The fast-forward of the products of an LP, whose events are in `engine`, in C.

    `skipped_steps` is the number of steps that were not simulated, `taken` that of the products
    which may repeat.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.skipped_steps = self.taken = 0
        self._products: list[_Submitted] = []
        self._walk: ProductWalk | None = None
        self._steps: list[SkippedSteps] = []
        self._period: _Period | None = None
        self._recordings: list[tuple[OpLog, list[OpRecord]]] = []
        self._bins: list[TimeBins] = []
        self._marks: dict[int, _Mark] = {}
        self._mark, self._next_mark, self._bound_ps = 0, 1, 0
        engine.at_mark = self._at_mark

    def submitted(self, parts: ProductParts, composite: TiledProduct, source: Any) -> None:
        """A product begins, whose steps `source` issues: take it if they may repeat."""
        gemm = composite.gemm
        plain = gemm.acc is None and gemm.bias is None and gemm.activation is None
        # A class of the user may do anything between two steps, and routers with credits have a
        # clock that never rests.
        topology = parts.topology
        modelled = topology.impl == Implementations() and topology.noc.flow_control == "unlimited"
        if plain and gemm.out is not None and modelled and composite.plan.tiles >= LEAST_STEPS:
            self.taken += 1
            self._products.append(_Submitted(parts, composite, source))
            composite.done.then(lambda _done: self._ended(source))
            self._begin_again()

    def _ended(self, source: Any) -> None:
        self._products = [each for each in self._products if each.source is not source]
        self._begin_again()

    def _begin_again(self) -> None:
        """Other products than before: forget what is known of those."""
        self._forget()
        self._walk, self._mark, self._next_mark = None, 0, 1
        for each in self._products:
            each.source.calendar = None
        # The marks of one are those of all, which are in one state together.
        if 0 < len(self._products) <= MOST_PRODUCTS:
            self._products[0].source.calendar = self._engine

    def _forget(self) -> None:
        for log, records in self._recordings:
            log.end_recording(records)
        for bins in self._bins:
            bins.end_log()
        self._bins = []
        self._recordings, self._period = [], None
        self._marks.clear()

    def _at_mark(self, bound_ps: int) -> int:
        """An output tile has begun; returns the number of events of the periods skipped."""
        self._mark += 1
        if self._mark < self._next_mark:
            return 0
        try:
            if self._period is None:
                self._compare(bound_ps)
            if self._period is not None:
                return self._skip(self._period, bound_ps)
        except NotClosed:
            # Something else is at work beside the products: this is no state to compare with.
            self._forget()
            self._next_mark = self._mark + max(1, self._mark // 4)
        return 0

    def _read(self) -> "tuple[ProductWalk, StateVector]":
        if self._walk is None:
            pipelines = [_pipeline(each) for each in self._products]
            self._steps = [
                SkippedSteps(pipeline, each.parts.log, finish)
                for pipeline, each in zip(pipelines, self._products, strict=True)
            ]
            self._walk = ProductWalk(self._engine, pipelines)
        return self._walk, self._walk.read()

    def _compare(self, bound_ps: int) -> None:
        """Compare the state with those at the marks before."""
        walk, state = self._read()
        if self._bound_ps != bound_ps or len(self._marks) >= MOST_MARKS:
            # Between two runs of the engine, messages of other SIPs may have arrived.
            self._next_mark = self._mark + len(self._marks) // MOST_MARKS * self._mark
            self._forget()
            self._bound_ps = bound_ps
            if self._mark < self._next_mark:
                return
        if not self._recordings:
            logs = {id(each.log): each.log for each in self._steps}.values()
            self._recordings = [(log, log.begin_recording()) for log in logs]
            self._bins = walk.bins()
            for bins in self._bins:
                bins.begin_log()
        key = state.key()
        before = self._marks.get(key)
        if before is not None and before.foreign_ps > state.now_ps:
            self._recur(before, state)
        self._marks[key] = _Mark(
            number=self._mark,
            state=state,
            begins=[each.begin(walk) for each in self._steps],
            records=[len(records) for _, records in self._recordings],
            services=[bins.logged for bins in self._bins],
            foreign_ps=walk.foreign_ps,
        )

    def _recur(self, before: _Mark, state: "StateVector") -> None:
        """Take the time from `before` to now as a period if the state recurs."""
        if not state.recurs(before.state):
            return
        for each, begin in zip(self._steps, before.begins, strict=True):
            each.end(begin)
        # Whole output tiles: what is in flight is named by them.
        if any(not each.period or each.period % each.depths for each in self._steps):
            return
        templates: list[list[RecordOfStep]] = []
        for (log, records), count in zip(self._recordings, before.records, strict=True):
            by_pe = {each.pe: each for each in self._steps if each.log is log}
            # The log of the core, where products are taken.
            waits = cast("Any", log).waits(records)[count:]
            templates.append(
                [
                    by_pe[each.cube, each.pe].template(each, waited)
                    for each, waited in zip(records[count:], waits, strict=True)
                ]
            )
        period = _Period(
            first=before.state,
            second=state,
            marks=self._mark - before.number,
            last=self._mark,
            templates=templates,
            alike=[each.last_alike() for each in self._steps],
            services=[
                bins.template(count)
                for bins, count in zip(self._bins, before.services, strict=True)
            ],
        )
        self._forget()
        self._period = period

    def _skip(self, period: _Period, bound_ps: int) -> int:
        """Skip the periods before the next event of something else."""
        passed_ps = period.second.now_ps - period.first.now_ps
        now_ps = self._engine.now_ps
        if (self._mark - period.last) % period.marks or now_ps + passed_ps >= bound_ps:
            return 0
        walk, state = self._read()
        if not (state.recurs(period.first) and state.recurs(period.second)):
            if self._mark - period.last > MOST_MARKS:
                self._forget()
            return 0
        # The last period of a product is simulated: there is no next step at its end.
        left = min(
            (min(alike, each.steps - each.period) - each.next_index) // each.period
            for each, alike in zip(self._steps, period.alike, strict=True)
        )
        if left < 1:
            self._forget()
            return 0
        periods = min(left, (min(bound_ps, walk.foreign_ps) - 1 - now_ps) // passed_ps)
        if periods < 1:
            return 0
        for each in self._steps:
            each.resume(walk)
        for templates in period.templates:
            emit_periods(templates, now_ps, period.first.now_ps, passed_ps, periods)
        for services in period.services:
            services.repeat(now_ps - period.first.now_ps, passed_ps, periods)
        walk.shift(period.first, period.second, periods)
        for each in self._steps:
            each.rename(walk, periods * each.period)
            self.skipped_steps += periods * each.period
        self._period = period._replace(last=self._mark)
        return periods * (period.second.ids - period.first.ids)


def fast_forward(engine: Engine, topology: Topology) -> FastForward | None:
    """The fast-forward of an LP; None for the core in Python, where each packet between SIPs has a
    delay of its own, and where the user switches it off.
    """
    # In this order, so that a wrong value is an error with both cores.
    if not fast_forward_requested() or not IS_COMPILED or links_have_jitter(topology):
        return None
    return FastForward(engine)


def _pipeline(product: _Submitted) -> "Pipeline":
    """The parts that the steps of a product pass; raises `NotClosed` for any of another class."""
    parts, (reads, writes) = product.parts, product.composite.blocks()
    if _overlap(reads, writes):
        raise NotClosed("steps read what steps before them have written")
    nodes = sorted({parts.locate(each.address)[1] for each in (*reads, *writes)})
    return Pipeline(product.composite, product.source, parts, nodes)


def _overlap(reads: list[Operand], writes: list[Operand]) -> bool:
    """Whether a byte between the first and the last one of a block is in one of both."""
    ends = sorted(
        [(each.address, end_of(each), False) for each in reads]
        + [(each.address, end_of(each), True) for each in writes]
    )
    # Of those with lower addresses, the greatest end of each kind.
    greatest = [0, 0]
    for begin, end, writing in ends:
        if begin < greatest[not writing]:
            return True
        greatest[writing] = max(greatest[writing], end)
    return False
