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
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol
from zlib import crc32

from runtime.core.run_tables import Cause
from runtime.core.trace import Operand
from runtime.language.chain import Chain, ChainPass, ChainPlan
from runtime.language.value import Value
from sip_node.chip.completion import Completion
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.vector_stream import StreamPaths, vector_record
from sip_node.chip.pe.compute.vector_times import ChainPassTimes, ChainStream, EngineCycles
from sip_node.chip.pe.context import PeContext


class VectorCalendar(Protocol):
    """The times and counters of a vector engine: free from `free_ps` on, busy for `busy_ps`."""

    free_ps: int
    busy_ps: int
    records: int


class ChainRun:
    """A chain in flight, whose results go to `targets` in TCM; `begun` of its passes have begun. It
    was queued at `queued_ps`.

    `done` completes when all results are in TCM. It does not before `least_end_ps`. Made before
    any result is written over an operand: the checksums are those of the operands.
    """

    def __init__(
        self, chain: Chain, targets: Sequence[Value], times: Sequence[ChainPassTimes]
    ) -> None:
        self.chain, self.targets, self.times = chain, targets, times
        self.done: Completion[None] = Completion()
        self.queued_ps = 0
        self.begun = self.least_end_ps = 0
        # The passes that are not computed, and the stores that are not complete.
        self.open = len(times)
        self._checksums = {
            number: crc32(source.tobytes())
            for number, source in enumerate(chain.sources)
            if chain.plan.is_kept[number]
        }

    def checksum(self, number: int) -> int:
        """The CRC-32 of a value."""
        checksum = self._checksums.get(number)
        if checksum is None:
            # Once, though a later pass may compute the value again.
            checksum = self._checksums[number] = crc32(self.chain.values[number].tobytes())
        return checksum


@dataclass(eq=False)
class _RunningPass:
    """A pass that runs: which, when its stages begin and end, and whether its operations are in
    the log. It was requested at `requested_ps`, and has `waited` if the engine had earlier work.
    """

    run: ChainRun
    each: ChainPass
    times: ChainPassTimes
    fetch_ps: int
    start_ps: int
    streamed_ps: int
    computed_ps: int
    requested_ps: int
    waited: bool
    recorded: bool = False


class VectorChains:
    """Runs chains on the engine of one PE, whose times are those of `calendar`."""

    def __init__(
        self,
        context: PeContext,
        calendar: VectorCalendar,
        fetch_store: PeFetchStore,
        paths: StreamPaths,
        cycles: EngineCycles,
    ) -> None:
        self._context, self._engine, self._calendar = context, context.engine, calendar
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
        run.queued_ps = self._engine.now_ps
        self._waiting.append(run)
        if not self._is_running:
            self._next()

    def earliest_end_ps(self, run: ChainRun) -> int:
        """A lower bound for the end of a chain that is queued or runs."""
        if run.begun:
            return run.least_end_ps
        return max(self._engine.now_ps, self._calendar.free_ps) + self._least_ps(run)

    def _next(self) -> None:
        self._is_running = bool(self._waiting)
        if self._waiting:
            self._begin(self._waiting.popleft())

    def _begin(self, run: ChainRun) -> None:
        """Begin the next pass of a chain."""
        each, times = run.chain.plan.passes[run.begun], run.times[run.begun]
        run.begun += 1
        free_ps, fetch_ps = self._calendar.free_ps, self._engine.now_ps
        requested_ps = run.queued_ps if run.begun == 1 else fetch_ps
        if times.fetched_bytes:
            fetch_ps, _ = self._fetch.reserve(fetch_ps, fetch_ps, times.fetched_bytes)
        start_ps = times.start.end_ps(free_ps, fetch_ps)
        streamed_ps = times.streamed.end_ps(free_ps, fetch_ps)
        self._calendar.free_ps = computed_ps = times.computed.end_ps(free_ps, fetch_ps)
        stream = _RunningPass(
            run=run,
            each=each,
            times=times,
            fetch_ps=fetch_ps,
            start_ps=start_ps,
            streamed_ps=streamed_ps,
            computed_ps=computed_ps,
            requested_ps=requested_ps,
            waited=max(free_ps, fetch_ps) > requested_ps,
        )
        self._calendar.busy_ps += computed_ps - start_ps
        run.least_end_ps = computed_ps + self._least_ps(run)
        if run.begun == len(run.times):
            # From here on the fetch port is idle: the next chain uses it while the engine computes
            # this pass.
            self._engine.at(start_ps, self._next)
        if times.streamed_bytes:
            run.open += 1
            first_ps = times.first.end_ps(free_ps, fetch_ps)
            stored_ps = times.stored.end_ps(free_ps, fetch_ps)
            self._engine.at(first_ps, self._store_streamed, stream, stored_ps)
        self._engine.at(computed_ps, self._end_pass, stream)

    def _least_ps(self, run: ChainRun) -> int:
        """The time of the passes that have not begun, in the engine."""
        return sum(self._paths.ps(0, times.least_cycles) for times in run.times[run.begun :])

    def _store_streamed(self, stream: _RunningPass, stored_ps: int) -> None:
        """Reserve the store port for what leaves vector by vector; `stored_ps` if it is free."""
        now_ps = self._engine.now_ps
        start_ps, end_ps = self._store.reserve(now_ps, now_ps, stream.times.streamed_bytes)
        if start_ps > now_ps:
            stored_ps = max(stored_ps, end_ps)
        self._engine.at(stored_ps, self._stored_streamed, stream)

    def _stored_streamed(self, stream: _RunningPass) -> None:
        # Operations come first in the log, since a store may take no time after the last vector;
        # its record begins when all vectors are computed: a record reads whole values.
        self._record_pass(stream)
        self._stored(stream.run, stream.each.streamed, stream.streamed_ps)

    def _end_pass(self, stream: _RunningPass) -> None:
        """The last result of a pass is computed."""
        run, now_ps = stream.run, self._engine.now_ps
        self._record_pass(stream)
        if stream.times.kept_bytes:
            run.open += 1
            start_ps, end_ps = self._store.reserve(now_ps, now_ps, stream.times.kept_bytes)
            self._engine.at(end_ps, self._stored, run, stream.each.kept, start_ps)
        if run.begun < len(run.times):
            self._begin(run)
        self._finish_one(run)

    def _stored(self, run: ChainRun, numbers: Sequence[int], start_ps: int) -> None:
        """Results of a chain are in TCM."""
        chain, now_ps = run.chain, self._engine.now_ps
        for number, target in zip(chain.plan.results, run.targets, strict=True):
            if number in numbers:
                value, block = chain.values[number], target.operand
                self._context.tcm.write(block, value.tobytes())
                self._record("store", (start_ps, now_ps), (value.operand,), block, run, number)
                self._fetch_store.store.records += 1
        self._finish_one(run)

    def _finish_one(self, run: ChainRun) -> None:
        run.open -= 1
        if not run.open:
            run.done.complete(None)

    def _record_pass(self, stream: _RunningPass) -> None:
        """Record the fetch of what is kept, then the operations, one behind the other; once."""
        if stream.recorded:
            return
        stream.recorded = True
        run, each, times = stream.run, stream.each, stream.times
        chain = run.chain
        # The first operation of a pass waits for the engine, the others for that one.
        requested_ps = stream.requested_ps if stream.waited else None
        for number in each.fetched:
            if chain.plan.is_kept[number]:
                source, span_ps = chain.sources[number], (stream.fetch_ps, stream.start_ps)
                copy = Operand(chain.copies[number], source.shape, source.dtype.name)
                self._record("fetch", span_ps, (source.operand,), copy, run, number)
                self._fetch_store.fetch.records += 1
        for numbers, weights, begins_ps, ends_ps in (
            (each.stream, times.stream_weights, stream.start_ps, stream.streamed_ps),
            (each.tail, times.tail_weights, stream.streamed_ps, stream.computed_ps),
        ):
            spans = pairwise(_shared(begins_ps, ends_ps, weights))
            for number, span_ps in zip(numbers, spans, strict=True):
                step = chain.step(number)
                self._record(
                    step.name,
                    span_ps,
                    chain.inputs_of(step),
                    step.result.operand,
                    run,
                    number,
                    axis=step.axis,
                    requested_ps=requested_ps,
                )
                requested_ps = None
                self._calendar.records += 1

    def _record(
        self,
        name: str,
        span_ps: tuple[int, int],
        inputs: Sequence[Operand | float],
        result: Operand,
        run: ChainRun,
        number: int,
        *,
        axis: int | None = None,
        requested_ps: int | None = None,
    ) -> None:
        self._context.record(
            vector_record(
                self._context.coordinates,
                name,
                span_ps,
                inputs,
                result,
                run.checksum(number),
                engine="pe_fetch_store" if name in ("fetch", "store") else "pe_math",
                axis=axis,
            ),
            requested_ps,
            Cause.NONE if requested_ps is None else Cause.ENGINE,
        )


def _shared(start_ps: int, end_ps: int, weights: Sequence[int]) -> list[int]:
    """The bounds of consecutive spans from `start_ps` to `end_ps`, by weight."""
    total = max(sum(weights), 1)
    parts = accumulate(weights, initial=0)
    return [start_ps + (end_ps - start_ps) * part // total for part in parts]
