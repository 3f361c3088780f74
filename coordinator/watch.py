"""The coordinator's ear: the messages of the LPs in order of arrival, and an error as soon as one fails, dies or hangs."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from coordinator.failure import Interrupted, LpDied, LpProcess, LpSilent, RankFailed, RunStalled
from coordinator.launcher import Children
from coordinator.liveness import Liveness
from coordinator.rendezvous import Rendezvous
from runtime.core.errors import KernbenchError, ProtocolError
from runtime.core.trace import OpRecord
from runtime.core.wallclock import now_s
from runtime.wire.codec import decode_records
from runtime.wire.messages import (
    Abort,
    Bye,
    Done,
    Failed,
    FromLp,
    Hello,
    MemoryContents,
    Ready,
    SlotTransfer,
    Status,
    TraceChunk,
    Transferred,
    Written,
)

POLL_S = 0.05
LAST_WORDS_S = 0.3
"""A process that has ended may have said why: how long its message is waited for before its exit is the error."""
ABORT_S = 1.0
FAREWELL_S = 10.0
_SUSPENDED_S = 2.0
_DURING_A_RUN = "Status"
"""What an LP that runs owes the coordinator now and then."""

_Reply = TypeVar("_Reply", Hello, Ready)


class RunObserver(Protocol):
    """Who wants to see a run while it happens."""

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        ...

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP says how far it is."""
        ...

    def ended(self) -> None:
        """Nothing more will come."""
        ...


@dataclass
class Collected:
    """What the LPs have sent so far; of use also when the run fails.

    `written` holds what the host of each SIP wrote, `contents` pieces of memories by physical address, `transfers` the slots
    that kernels sent and received, SIP by SIP in the order of their times.
    """

    done: dict[int, Done] = field(default_factory=dict[int, Done])
    logs: dict[int, list[OpRecord]] = field(default_factory=dict[int, list[OpRecord]])
    reached_ps: dict[int, int] = field(default_factory=dict[int, int])
    written: dict[int, bytearray] = field(default_factory=dict[int, bytearray])
    contents: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    transfers: list[SlotTransfer] = field(default_factory=list[SlotTransfer])

    @property
    def time_ps(self) -> int:
        """The latest simulated time that an LP has reported."""
        return max(self.reached_ps.values(), default=0)


class Watch:
    """Listens to the LPs of one run, of which LP k holds `sips_of_lp[k]`.

    `timeout_s` bounds the silence of an LP, 0 means for ever. `stop_signal()` tells which signal asked the run to stop.
    """

    def __init__(
        self,
        rendezvous: Rendezvous,
        children: Children,
        sips_of_lp: tuple[tuple[int, ...], ...],
        timeout_s: float,
        stop_signal: Callable[[], int | None],
        observer: RunObserver,
    ) -> None:
        self.collected = Collected()
        self._rendezvous = rendezvous
        self._children = children
        self._sips_of_lp = sips_of_lp
        self._timeout_s = timeout_s
        self._stop_signal = stop_signal
        self._observer = observer
        now = now_s()
        self._lps = range(len(sips_of_lp))
        self._liveness = Liveness(len(sips_of_lp), now)
        self._ended_s: dict[int, float] = {}
        self._checked_s = now

    def gather(self, kind: type[_Reply]) -> dict[int, _Reply]:
        """One `kind` from every LP; anything else is a `ProtocolError`."""
        replies: dict[int, _Reply] = {}
        self._liveness.renew(now_s())
        while missing := [lp for lp in self._lps if lp not in replies]:
            lp, message = self._next(missing, kind.__name__)
            if not isinstance(message, kind):
                raise ProtocolError(
                    f"LP {lp}", f"{type(message).__name__} where {kind.__name__} is due"
                )
            replies[lp] = message
        return replies

    def collect(self) -> None:
        """Follow the run until every LP is done."""
        done = self.collected.done
        self._liveness.renew(now_s())
        while missing := [lp for lp in self._lps if lp not in done]:
            lp, message = self._next(missing, _DURING_A_RUN)
            if lp in done:
                raise ProtocolError(f"LP {lp}", f"{type(message).__name__} after Done")
            self._keep(lp, message)

    def farewell(self) -> None:
        """Let every LP go; one that does not end well, or not within ten seconds, is an error."""
        self._rendezvous.broadcast(Bye())
        deadline = now_s() + FAREWELL_S
        for lp in self._lps:
            code = self._children.join(lp, deadline - now_s())
            if code is None:
                raise LpSilent(self._place(lp), "exit", FAREWELL_S, self._reached(lp))
            if code != 0:
                raise LpDied(self._place(lp), code, self._reached(lp))

    def abort(self, error: KernbenchError) -> None:
        """Tell every LP to stop, and keep what they still send of their traces while they do."""
        self._rendezvous.broadcast(Abort(str(error).splitlines()[0]))
        deadline = now_s() + ABORT_S
        while now_s() < deadline and len(self._children.exited()) < len(self._children.pids):
            self._hear_last_words()
        while self._hear_last_words():
            pass

    def _hear_last_words(self) -> bool:
        # The run has failed already: one more broken message must not hide why.
        with suppress(ProtocolError):
            received = self._rendezvous.receive(POLL_S)
            if received is None:
                return False
            lp, message = received
            if isinstance(message, TraceChunk | Transferred):
                self._keep(lp, message)
        return True

    def _keep(self, lp: int, message: FromLp) -> None:
        match message:
            case Status():
                self.collected.reached_ps[lp] = message.time_ps
                self._observer.status(message, self._sips_of_lp[lp])
            case TraceChunk():
                self._keep_trace(lp, message)
            case Written():
                self._require_own_sips(lp, (message.sip,))
                self.collected.written.setdefault(message.sip, bytearray()).extend(message.data)
            case MemoryContents():
                self._require_own_sips(lp, (message.sip,))
                self.collected.contents.append((message.address, message.data))
            case Transferred():
                self._require_own_sips(lp, (message.transfer.sip,))
                self.collected.transfers.append(message.transfer)
            case Done():
                self._require_own_sips(
                    lp, tuple(report.sip for report in message.sips), complete=True
                )
                self.collected.done[lp] = message
                self.collected.reached_ps[lp] = max(report.time_ps for report in message.sips)
            case _:
                raise ProtocolError(f"LP {lp}", f"{type(message).__name__} during a run")

    def _keep_trace(self, lp: int, chunk: TraceChunk) -> None:
        self._require_own_sips(lp, (chunk.sip,))
        records = decode_records(chunk.records, f"LP {lp}")
        self.collected.logs.setdefault(chunk.sip, []).extend(records)

    def _require_own_sips(self, lp: int, sips: tuple[int, ...], *, complete: bool = False) -> None:
        own = self._sips_of_lp[lp]
        if sips != own if complete else not set(sips) <= set(own):
            raise ProtocolError(f"LP {lp}", f"it speaks for SIPs {sips}, it holds {own}")

    def _next(self, missing: list[int], due: str) -> tuple[int, FromLp]:
        """The next message of any LP, of which those in `missing` owe one."""
        while True:
            received = self._rendezvous.receive(POLL_S)
            if now_s() - self._checked_s >= POLL_S:
                self._check(missing, due)
            if received is None:
                continue
            lp, message = received
            self._liveness.heard(lp, message, now_s())
            if isinstance(message, Failed):
                self.collected.reached_ps[lp] = message.time_ps
                raise RankFailed(self._place(lp), message)
            return lp, message

    def _check(self, missing: list[int], due: str) -> None:
        now = now_s()
        if now - self._checked_s > _SUSPENDED_S:
            # It was this process that was stopped, and perhaps the LPs with it: their silence proves nothing.
            self._liveness.renew(now)
        self._checked_s = now
        signum = self._stop_signal()
        if signum is not None:
            raise Interrupted(signum, self.collected.time_ps)
        self._check_exits(now)
        self._check_silence(missing, due, now)

    def _check_exits(self, now: float) -> None:
        for lp, code in self._children.exited().items():
            if (
                lp not in self.collected.done
                and now - self._ended_s.setdefault(lp, now) > LAST_WORDS_S
            ):
                raise LpDied(self._place(lp), code, self._reached(lp))

    def _check_silence(self, missing: list[int], due: str, now: float) -> None:
        limit_s, running = self._timeout_s, due == _DURING_A_RUN
        if not limit_s:
            return
        silent = self._liveness.silent(missing, limit_s, now)
        if silent is not None:
            refusals = (
                f" (refused: {'; '.join(self._rendezvous.refusals)})"
                if self._rendezvous.refusals
                else ""
            )
            others = self._account([lp for lp in missing if lp != silent], now) if running else None
            if running:
                self._children.show_stack(silent)
            raise LpSilent(
                self._place(silent), due + refusals, limit_s, self._reached(silent), others
            )
        if running and self._liveness.stalled(missing, limit_s, now):
            raise RunStalled(limit_s, self.collected.time_ps, self._account(missing, now))

    def _account(self, lps: list[int], now: float) -> tuple[str, ...]:
        return tuple(self._liveness.account([self._place(lp) for lp in lps], now))

    def _reached(self, lp: int) -> int:
        return self.collected.reached_ps.get(lp, 0)

    def _place(self, lp: int) -> LpProcess:
        return LpProcess(lp, self._sips_of_lp[lp], self._children.pid(lp))
