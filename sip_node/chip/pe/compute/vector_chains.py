"""The chains of the vector engine: several operations as one stream, in one or more passes.

Chains run in turn: a chain begins when the engine has taken the first vector of the last pass of
its predecessor, so its fetch overlaps with that pass. A further pass of a chain begins when the
tail of the previous pass is computed. Other users of the ports and of the engine, single operations
and epilogues of products, take their turns between passes.

    fetch port    | pass 1 |                | pass 2 |            | next chain
    engine           | stream 1 | tail 1 |     | stream 2 | tail 2 |
    store port                           | kept |   | streamed | kept |
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from runtime.core.run_tables import NONE
from runtime.core.trace import Operand
from runtime.language.chain import Chain, ChainPass, ChainPlan
from runtime.language.value import Value
from sip_node.chip.completion import Completion
from sip_node.chip.mapping.strided_block import nbytes_of
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.vector_stream import StreamPaths
from sip_node.chip.pe.compute.vector_times import ChainPassTimes, ChainStream, EngineCycles
from sip_node.chip.pe.context import PeContext
from sip_node.kernel import checksums, records
from sip_node.kernel.component import Component

# What an event goes on with: a run, a pass, or what is stored.
_NEXT, _STREAMED, _STREAM_STORED, _PASS_ENDS, _KEPT_STORED = range(5)


class VectorCalendar(Protocol):
    """The times and counters of a vector engine: free from `free_ps` on, busy for `busy_ps`."""

    free_ps: int
    busy_ps: int
    records: int


class ChainRun:
    """A chain in flight, whose results go to `targets` in TCM; `begun` of its passes have begun. It
    was queued at `queued_ps`, in a run with records by a call in `step`.

    `done` completes when all results are in TCM. It does not before `least_end_ps`. Made before
    any result is written over an operand: the checksums are those of the operands.
    """

    def __init__(
        self, chain: Chain, targets: Sequence[Value], times: Sequence[ChainPassTimes]
    ) -> None:
        self.chain, self.targets, self.times = chain, targets, times
        self.done: Completion[None] = Completion()
        self.queued_ps, self.step = 0, NONE
        self.begun = self.least_end_ps = 0
        # The passes that are not computed, and the stores that are not complete.
        self.open = len(times)
        self._checksums: dict[int, int] = {}
        for number in range(len(chain.sources)):
            if chain.plan.is_kept[number]:
                self.checksum(number)

    def checksum(self, number: int) -> int:
        """The CRC-32 of a value."""
        # Once, though a later pass may compute the value again.
        if number not in self._checksums:
            data = self.chain.values[number].tobytes()
            self._checksums[number] = checksums.checksum_of(data)
        return self._checksums[number]


class RunningPass:
    """A pass of `run` that runs: when its stages begin and end, and whether its operations are in
    the log. It was requested at `requested_ps`, and has `waited` if the engine had earlier work.
    The store port has its streamed results at `stored_ps`, if it is free, and stores what is kept
    from `kept_ps` on.
    """

    def __init__(self, run: ChainRun, each: ChainPass, times: ChainPassTimes) -> None:
        self.run, self.each, self.times = run, each, times
        self.fetch_ps = self.start_ps = self.streamed_ps = self.computed_ps = 0
        self.requested_ps = self.stored_ps = self.kept_ps = 0
        self.waited = self.recorded = False


class VectorChains(Component):
    """Runs chains on the engine of one PE, whose times are those of `calendar`."""

    def __init__(
        self,
        context: PeContext,
        calendar: VectorCalendar,
        fetch_store: PeFetchStore,
        paths: StreamPaths,
        cycles: EngineCycles,
    ) -> None:
        self.join(context.engine)
        self._calendar, self._tcm, self._log = calendar, context.tcm, context.log
        self._cube, self._pe = context.coordinates.cube, context.coordinates.pe
        self._fetch_store, (self._fetch, self._store) = fetch_store, fetch_store.ports
        self._paths, self._cycles = paths, cycles
        self._waiting: deque[ChainRun] = deque()
        self._is_running = False
        # By plan: a kernel repeats its chains on blocks of a few sizes.
        self._times: dict[ChainPlan, tuple[ChainPassTimes, ...]] = {}

    def prepared(self, chain: Chain, targets: Sequence[Value]) -> ChainRun:
        """A chain that can be queued, whose results go to `targets`."""
        plan = chain.plan
        times = self._times.get(plan)
        if times is None:
            times = self._times[plan] = tuple(
                ChainStream(plan, each, self._cycles).times(self._paths) for each in plan.passes
            )
        return ChainRun(chain, targets, times)

    def queue(self, run: ChainRun) -> None:
        """Run a chain after all that are queued."""
        run.queued_ps, run.step = self.engine.now_ps, self._log.step
        self._waiting.append(run)
        if not self._is_running:
            self._next()

    def earliest_end_ps(self, run: ChainRun) -> int:
        """A lower bound for the end of a chain that is queued or runs."""
        if run.begun:
            return run.least_end_ps
        return max(self.engine.now_ps, self._calendar.free_ps) + self._least_ps(run)

    def proceed(self, step: int, subject: Any) -> None:
        """Go on with the chains, or with a pass."""
        if step == _NEXT:
            self._next()
            return
        stream: RunningPass = subject
        if step == _STREAMED:
            self._store_streamed(stream)
        elif step == _STREAM_STORED:
            # Operations come first in the log, since a store may take no time after the last
            # vector; its record begins when all vectors are computed: a record reads whole values.
            self._record_pass(stream)
            self._stored(stream.run, stream.each.streamed, stream.streamed_ps)
        elif step == _PASS_ENDS:
            self._end_pass(stream)
        else:
            self._stored(stream.run, stream.each.kept, stream.kept_ps)

    def _next(self) -> None:
        self._is_running = bool(self._waiting)
        if self._waiting:
            self._begin(self._waiting.popleft())

    def _begin(self, run: ChainRun) -> None:
        """Begin the next pass of a chain."""
        each, times = run.chain.plan.passes[run.begun], run.times[run.begun]
        run.begun += 1
        free_ps, fetch_ps = self._calendar.free_ps, self.engine.now_ps
        requested_ps = run.queued_ps if run.begun == 1 else fetch_ps
        if times.fetched_bytes:
            fetch_ps, _ = self._fetch.reserve(fetch_ps, fetch_ps, times.fetched_bytes)
        start_ps = times.start.end_ps(free_ps, fetch_ps)
        streamed_ps = times.streamed.end_ps(free_ps, fetch_ps)
        self._calendar.free_ps = computed_ps = times.computed.end_ps(free_ps, fetch_ps)
        stream = RunningPass(run, each, times)
        stream.fetch_ps, stream.start_ps, stream.streamed_ps = fetch_ps, start_ps, streamed_ps
        stream.computed_ps, stream.requested_ps = computed_ps, requested_ps
        stream.waited = max(free_ps, fetch_ps) > requested_ps
        self._calendar.busy_ps += computed_ps - start_ps
        run.least_end_ps = computed_ps + self._least_ps(run)
        if run.begun == len(run.times):
            # From here on the fetch port is idle: the next chain uses it while the engine computes
            # this pass.
            self.later(start_ps, _NEXT, None)
        if times.streamed_bytes:
            run.open += 1
            stream.stored_ps = times.stored.end_ps(free_ps, fetch_ps)
            self.later(times.first.end_ps(free_ps, fetch_ps), _STREAMED, stream)
        self.later(computed_ps, _PASS_ENDS, stream)

    def _least_ps(self, run: ChainRun) -> int:
        """The time of the passes that have not begun, in the engine."""
        return sum([self._paths.ps(0, times.least_cycles) for times in run.times[run.begun :]])

    def _store_streamed(self, stream: RunningPass) -> None:
        """Reserve the store port for what leaves vector by vector."""
        now_ps, stored_ps = self.engine.now_ps, stream.stored_ps
        start_ps, end_ps = self._store.reserve(now_ps, now_ps, stream.times.streamed_bytes)
        if start_ps > now_ps:
            stored_ps = max(stored_ps, end_ps)
        self.later(stored_ps, _STREAM_STORED, stream)

    def _end_pass(self, stream: RunningPass) -> None:
        """The last result of a pass is computed."""
        run, now_ps = stream.run, self.engine.now_ps
        self._record_pass(stream)
        if stream.times.kept_bytes:
            run.open += 1
            stream.kept_ps, end_ps = self._store.reserve(now_ps, now_ps, stream.times.kept_bytes)
            self.later(end_ps, _KEPT_STORED, stream)
        if run.begun < len(run.times):
            self._begin(run)
        self._finish_one(run)

    def _stored(self, run: ChainRun, numbers: Sequence[int], start_ps: int) -> None:
        """Results of a chain are in TCM."""
        chain = run.chain
        for index, number in enumerate(chain.plan.results):
            if number in numbers:
                value, block = chain.values[number], run.targets[index].operand
                self._tcm.write(block, value.tobytes())
                span_ps = start_ps, self.engine.now_ps
                self._record_copy(run, number, "store", span_ps, value.operand, block)
                self._fetch_store.store.records += 1
        self._finish_one(run)

    def _finish_one(self, run: ChainRun) -> None:
        run.open -= 1
        if not run.open:
            run.done.complete(None)

    def _record_pass(self, stream: RunningPass) -> None:
        """Record the fetch of what is kept, then the operations, one behind the other; once."""
        if stream.recorded:
            return
        stream.recorded = True
        run, chain, times = stream.run, stream.run.chain, stream.times
        for number in stream.each.fetched:
            if chain.plan.is_kept[number]:
                source = chain.sources[number]
                copy = Operand(chain.copies[number], source.shape, source.dtype.name)
                span_ps = stream.fetch_ps, stream.start_ps
                self._record_copy(run, number, "fetch", span_ps, source.operand, copy)
                self._fetch_store.fetch.records += 1
        # The first operation of a pass waits for the engine, the others for that one.
        requested_ps = stream.requested_ps if stream.waited else -1
        requested_ps = self._record_steps(
            run,
            stream.each.stream,
            _shared(stream.start_ps, stream.streamed_ps, times.stream_weights),
            requested_ps,
        )
        self._record_steps(
            run,
            stream.each.tail,
            _shared(stream.streamed_ps, stream.computed_ps, times.tail_weights),
            requested_ps,
        )

    def _record_steps(
        self,
        run: ChainRun,
        numbers: Sequence[int],
        bounds_ps: Sequence[int],
        requested_ps: int,
    ) -> int:
        """Record operations between consecutive bounds. The first one waits for the engine since
        `requested_ps`, unless that is -1; returns that time for the next one.
        """
        chain = run.chain
        for index, number in enumerate(numbers):
            step, start_ps = chain.step(number), bounds_ps[index]
            result = step.result.operand
            waited = requested_ps >= 0
            records.enter(
                self._log,
                "pe_math",
                step.name,
                start_ps,
                bounds_ps[index + 1],
                self._cube,
                self._pe,
                nbytes_of(result),
                run.checksum(number),
                requested_ps if waited else start_ps,
                records.FOR_ENGINE if waited else records.FOR_NOTHING,
                run.step,
                result,
                chain.inputs_of(step),
                None,
                None,
                step.axis,
            )
            requested_ps = -1
            self._calendar.records += 1
        return requested_ps

    def _record_copy(
        self,
        run: ChainRun,
        number: int,
        name: str,
        span_ps: tuple[int, int],
        source: Operand,
        copy: Operand,
    ) -> None:
        """Record a value that the fetch port or the store port has moved."""
        start_ps, end_ps = span_ps
        records.enter(
            self._log,
            "pe_fetch_store",
            name,
            start_ps,
            end_ps,
            self._cube,
            self._pe,
            nbytes_of(copy),
            run.checksum(number),
            start_ps,
            records.FOR_NOTHING,
            run.step,
            copy,
            (source,),
            None,
            None,
        )


def _shared(start_ps: int, end_ps: int, weights: Sequence[int]) -> list[int]:
    """The bounds of consecutive spans from `start_ps` to `end_ps`, by weight."""
    total, part, bounds = max(sum(weights), 1), 0, [start_ps]
    for weight in weights:
        part += weight
        bounds.append(start_ps + (end_ps - start_ps) * part // total)
    return bounds
