"""Receives the messages of the LPs; raises as soon as one fails, exits or hangs.

Every received message is stored in `Collected`, so that a failed run still leaves its traces. At
least every `POLL_S` seconds the processes, the time limits and the stop signal are checked:

    a `Failed` message                      RankFailed
    an exit before `Done`                   LpDied, after a short wait for a final message
    an end of the connection before `Done`  LpLost, of an LP that a launcher has started
    an LP does not reach another one        PeerUnreachable, unless that one has ended
    no message for `timeout_s`              LpSilent, unless it starts, imports or compiles
    messages, but no progress of any LP     RunStalled
    a rank computes, others wait for it     CollectiveTimeout, if a process group sets a limit
    Ctrl-C or SIGTERM                       Interrupted
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from coordinator.launch.children import Children
from coordinator.launch.placement import Placement
from coordinator.launch.rendezvous import Rendezvous
from coordinator.watch.collected import Collected
from coordinator.watch.failure import (
    CollectiveTimeout,
    Interrupted,
    LpDied,
    LpExitFailed,
    LpLost,
    LpProcess,
    LpSilent,
    PeerUnreachable,
    RankFailed,
    RanksAbsent,
    RunStalled,
    SlowExit,
)
from coordinator.watch.late_ranks import CollectiveWaits
from coordinator.watch.liveness import Liveness
from coordinator.watch.processor_time import ProcessorTime, processor_time
from runtime.core.errors import KernbenchError, ProtocolError
from runtime.core.wallclock import now_s
from runtime.wire.control import (
    Abort,
    Busy,
    Bye,
    Done,
    Failed,
    FromLp,
    Hello,
    MessagePiece,
    Printed,
    Ready,
    RecordChunk,
    Status,
    TraceChunk,
    Transferred,
)
from runtime.wire.pieces import cut_text

TIMEOUT_S = 60.0
"""The longest silence of an LP, unless the command line or a process group sets a limit."""
POLL_S = 0.05
"""Longest time between two checks of processes, time limits and signals."""
FINAL_MESSAGE_S = 0.3
"""Time from the exit of a process to the error, because its `Failed` may still be in transit."""
UNREACHABLE_S = 0.7
"""Time from the report that a peer is not reached to the error, because the peer may have ended:
the heartbeats of its two connections stop at different moments.
"""
_SUSPENDED_S = 2.0
"""A longer gap between two checks means that the coordinator itself was suspended."""
_READ_S = 0.25
"""Least time between two readings of the processor time of silent LPs."""
_DURING_A_RUN = "Status"
"""The message that is due repeatedly while an LP runs."""

_Reply = TypeVar("_Reply", Hello, Ready)


class RunObserver(Protocol):
    """Observes a run while it takes place, for example to show its progress."""

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        ...

    def placed(self, placement: Placement, sips_of_lp: tuple[tuple[int, ...], ...]) -> None:
        """Every process has joined; `sips_of_lp` are the SIPs of each LP."""
        ...

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """The LP of `sips` reported its simulated time and its number of events."""
        ...

    def ended(self) -> None:
        """The run has ended; this is the last call."""
        ...


class Watch:
    """Receives from the LPs of one run; LP k holds the SIPs `sips_of_lp[k]`.

    `timeout_s` limits the silence of an LP, 0 means no limit; None stands for `TIMEOUT_S` more
    than the longest limit of a process group. `stop_signal()` returns the number of
    the signal that requested the end of the run, or None.
    """

    def __init__(
        self,
        rendezvous: Rendezvous,
        children: Children,
        sips_of_lp: tuple[tuple[int, ...], ...],
        timeout_s: float | None,
        stop_signal: Callable[[], int | None],
        observer: RunObserver,
    ) -> None:
        self.collected = Collected()
        self._rendezvous = rendezvous
        self._children = children
        self._sips_of_lp = sips_of_lp
        self._given_timeout_s = timeout_s
        self._waits = CollectiveWaits(timeout_s)
        self._stop_signal = stop_signal
        self._observer = observer
        now = now_s()
        self._lps = range(len(sips_of_lp))
        self._liveness = Liveness(len(sips_of_lp), now)
        self._ended_s: dict[int, float] = {}
        self._placement = Placement.on_one_host(len(sips_of_lp))
        self._unreachable: tuple[float, Failed] | None = None
        self._checked_s = self._read_s = now

    def placed(self, placement: Placement) -> None:
        """The LPs have the numbers and hosts of `placement` from now on."""
        self._placement = placement

    def receive_from_all(self, kind: type[_Reply]) -> dict[int, _Reply]:
        """Receive one message `kind` from every LP; any other message is a `ProtocolError`."""
        replies: dict[int, _Reply] = {}
        self._liveness.restart(now_s())
        while missing := [lp for lp in self._lps if lp not in replies]:
            lp, message = self._next(missing, kind.__name__)
            if not isinstance(message, kind):
                raise ProtocolError(
                    f"LP {lp}", f"{type(message).__name__} where {kind.__name__} is due"
                )
            replies[lp] = message
        return replies

    def collect(self) -> None:
        """Store the messages of the run until every LP has sent `Done`."""
        done = self.collected.done
        self._liveness.restart(now_s())
        while missing := [lp for lp in self._lps if lp not in done]:
            lp, message = self._next(missing, _DURING_A_RUN)
            if lp in done:
                raise ProtocolError(f"LP {lp}", f"{type(message).__name__} after Done")
            self._store(lp, message)
        # A rank may have been late shortly before the end.
        self._check_collectives()

    def dismiss(self) -> None:
        """Send `Bye`: the processes exit."""
        self._rendezvous.broadcast(Bye())

    def wait_for_exits(self, exit_s: float) -> tuple[SlowExit, ...]:
        """Return the children that have not exited after `exit_s`.

        LPs of a launcher close their connections first: an LP that lost that of its coordinator
        before it has read `Bye` would fail. A stop signal ends the wait. The caller kills the
        processes that still run.
        """
        began_s = now_s()
        # The results are complete, so Ctrl-C no longer ends the run: it only ends this wait.
        while self._stop_signal() is None and now_s() - began_s < exit_s:
            running = self._running()
            if running:
                self._children.join(running[0], POLL_S)
            elif self._connected():
                self._wait_for_end_of_connection()
            else:
                return ()
        waited_s = now_s() - began_s
        return tuple(SlowExit(self._process(lp), waited_s) for lp in self._running())

    def require_clean_exits(self) -> None:
        """Raise `LpExitFailed` if an LP has exited with a code other than 0 after its report."""
        for lp, code in self._children.exited().items():
            if code:
                raise LpExitFailed(self._process(lp), code, self._reached_ps(lp))

    def _running(self) -> list[int]:
        exited = self._children.exited()
        return [lp for lp in self._lps if self._children.pid(lp) is not None and lp not in exited]

    def _connected(self) -> bool:
        """Whether an LP of a launcher is still connected."""
        return any(self._children.pid(lp) is None for lp in self._rendezvous.connected())

    def _wait_for_end_of_connection(self) -> None:
        # Its results are complete, so a message that is late or broken is of no interest.
        with suppress(ProtocolError):
            self._rendezvous.receive(POLL_S)

    def abort(self, error: KernbenchError, grace_s: float) -> None:
        """Send `Abort`, and store the traces that the LPs send before they exit.

        The caller ends the processes that still run after `grace_s`.
        """
        self._rendezvous.broadcast(Abort(cut_text(str(error).partition("\n")[0])))
        deadline = now_s() + grace_s
        while now_s() < deadline and not self._all_ended():
            self._store_trace_of_aborted_run()
        while self._store_trace_of_aborted_run():
            pass
        # As above: only the first error counts.
        with suppress(ProtocolError):
            self.collected.logs.index()

    def _all_ended(self) -> bool:
        return not self._connected() and len(self._children.exited()) == len(self._children.pids)

    def _store_trace_of_aborted_run(self) -> bool:
        """Receive one message; whether there was one."""
        # The run has already failed: a broken message now must not replace that error.
        with suppress(ProtocolError):
            received = self._rendezvous.receive(POLL_S)
            if received is None:
                return False
            lp, message = received
            if isinstance(message, TraceChunk | RecordChunk | Transferred | Printed):
                self._store(lp, message)
        return True

    def _store(self, lp: int, message: FromLp) -> None:
        sips = self._sips_of_lp[lp]
        self.collected.add(lp, sips, message)
        if isinstance(message, Status):
            self._observer.status(message, sips)

    def _next(self, missing: list[int], due: str) -> tuple[int, FromLp]:
        """The next message of any LP; a message `due` is missing from the LPs in `missing`."""
        while True:
            received = self._rendezvous.receive(POLL_S)
            if now_s() - self._checked_s >= POLL_S:
                self._check(missing, due)
            if received is None:
                continue
            lp, message = received
            if isinstance(message, Busy):
                self._computes(lp, message)
                continue
            self._liveness.received(lp, message, now_s())
            if isinstance(message, MessagePiece):
                continue
            if isinstance(message, Status | Done):
                self._waits.received(message.ranks)
            if isinstance(message, Failed):
                self._failed(lp, message)
                continue
            return lp, message

    def _computes(self, lp: int, message: Busy) -> None:
        """An LP has a program that computes.

        It is sent beside the LP: it shows neither progress of the LP nor that it reacts.
        """
        self._waits.received(message.ranks, message.stretch_s)
        self._liveness.imports(lp, imports=message.imports)
        if self._children.pid(lp) is None:
            used = ProcessorTime(message.used_s, message.used_by_children_s)
            self._liveness.used({lp: used}, now_s(), starting=False)

    def _failed(self, lp: int, message: Failed) -> None:
        """Raise the error of an LP, unless its cause may be another one."""
        self.collected.reached_ps[lp] = message.time_ps
        if message.lost_peer >= 0:
            # The peer may have ended: its own connection shows that soon.
            self._unreachable = self._unreachable or (now_s(), message)
            return
        if message.sender:
            # The reporting LP only received what the sender should not have sent.
            raise ProtocolError(message.sender, f"{message.message} (received by LP {lp})")
        raise RankFailed(self._process(lp), message)

    def _check(self, missing: list[int], due: str) -> None:
        now = now_s()
        if now - self._checked_s > _SUSPENDED_S:
            # This process was suspended (Ctrl-Z, a debugger, a laptop), and perhaps the LPs as
            # well: their silence during that time is no sign of a fault.
            self._liveness.restart(now)
        self._checked_s = now
        signum = self._stop_signal()
        if signum is not None:
            raise Interrupted(signum, self.collected.time_ps)
        self._check_exits(now)
        self._check_connections(now)
        self._check_collectives()
        self._check_silence(missing, due, now)

    @property
    def _timeout_s(self) -> float:
        """The longest silence of an LP in seconds, 0 for no limit."""
        if self._given_timeout_s is not None:
            return self._given_timeout_s
        # A rank may compute for some time before others begin to wait for it.
        return TIMEOUT_S + self._waits.longest_limit_s

    def _check_collectives(self) -> None:
        late = self._waits.overdue()
        if late is not None:
            lp = next(lp for lp in self._lps if late.late in self._sips_of_lp[lp])
            if late.computes:
                self._children.show_stack(lp)
            raise CollectiveTimeout(self._process(lp), late, self._reached_ps(lp))

    def _check_exits(self, now: float) -> None:
        for lp, code in self._children.exited().items():
            if self._has_ended(lp, now):
                raise LpDied(self._process(lp), code, self._reached_ps(lp))

    def _check_connections(self, now: float) -> None:
        for lp, reason in self._rendezvous.lost().items():
            # The exit code of a child has more information than the end of its connection.
            if self._children.pid(lp) is None and self._has_ended(lp, now):
                raise LpLost(self._process(lp), reason, self._reached_ps(lp))
        if self._unreachable is not None:
            since_s, failed = self._unreachable
            if now - since_s > UNREACHABLE_S:
                process, peer = self._process(failed.lp), self._process(failed.lost_peer)
                raise PeerUnreachable(process, peer, failed.message, failed.time_ps)

    def _has_ended(self, lp: int, now: float) -> bool:
        """Whether LP `lp`, which has ended, did so before its report and some time ago."""
        ended_s = self._ended_s.setdefault(lp, now)
        return lp not in self.collected.done and now - ended_s > FINAL_MESSAGE_S

    def _check_silence(self, missing: list[int], due: str, now: float) -> None:
        limit_s, running = self._timeout_s, due == _DURING_A_RUN
        if not limit_s:
            return
        self._read_processor_times(missing, now, starting=not running)
        hung = self._liveness.hung(missing, limit_s, now)
        if hung is not None and due == Hello.__name__ and self._children.pid(hung) is None:
            refusals = tuple(each.reason for each in self._rendezvous.refusals)
            raise RanksAbsent(tuple(missing), len(self._lps), limit_s, refusals)
        if hung is not None:
            others = None
            if running:
                others = self._states([lp for lp in missing if lp != hung], now)
                self._children.show_stack(hung)
            refusals = "; ".join(each.reason for each in self._rendezvous.refusals)
            due += f" (refused: {refusals})" if refusals else ""
            used_s = self._liveness.used_in_silence_s(hung)
            reached_ps = self._reached_ps(hung)
            raise LpSilent(self._process(hung), due, limit_s, reached_ps, others, used_s)
        if running and self._liveness.stalled(missing, limit_s, now):
            raise RunStalled(limit_s, self.collected.time_ps, self._states(missing, now))

    def _read_processor_times(self, missing: list[int], now: float, *, starting: bool) -> None:
        if now - self._read_s < _READ_S:
            return
        self._read_s = now
        times = {
            lp: time
            for lp in self._liveness.silent(missing, now)
            if (pid := self._children.pid(lp)) is not None
            and (time := processor_time(pid)) is not None
        }
        self._liveness.used(times, now, starting=starting)

    def _states(self, lps: list[int], now: float) -> tuple[str, ...]:
        return tuple(self._liveness.states([self._process(lp) for lp in lps], now))

    def _reached_ps(self, lp: int) -> int:
        return self.collected.reached_ps.get(lp, 0)

    def _process(self, lp: int) -> LpProcess:
        pid, host = self._children.pid(lp), self._placement.host_of(lp)
        return LpProcess(lp, self._sips_of_lp[lp], pid, host)
