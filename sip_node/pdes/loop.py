"""A logical process (LP): the loop that keeps a model in step with its peers.

One round is *drain, inject, step, promise*: take what the peers sent, hand their messages to the
model, execute the events that are safe, promise how far the LP has got. An LP with nothing left to
execute then waits. The decisions are those of `sync.py`; this module only carries them out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from runtime.core.wallclock import now_s
from runtime.wire.frames import Frame, Grant, Message, PeerContent, Silence
from sip_node.pdes.promises import SendBound
from sip_node.pdes.silence import SilenceTree
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport

WAIT_S = 0.2
"""Longest wait of a blocked LP."""
WATCH_S = 0.02
"""Shortest time between two calls of `watch`."""
BATCH_EVENTS = 1000
"""Events of a step between two looks at the clock."""
STEP_S = 0.1
"""The longest step, but for a batch: an LP that is far ahead of its peers, or alone, still calls
`watch`. In a shorter one, the promises of many SIPs would cost more than the events.

No limit of simulated time does as well: a copy of megabytes has few events, and the collective
behind it has millions in the same time. No result depends on the length of a step.
"""


class Model(Protocol):
    """The simulated system of an LP.

    It sends to another LP by calling `Sync.post` from an event, at least a lookahead ahead.
    """

    def next_ps(self) -> int:
        """The time of the earliest event, delivered messages included; `NEVER_PS` without one."""
        ...

    def run_before(self, bound_ps: int, at_most: int) -> int:
        """Execute the events before `bound_ps`, new ones included; returns their number.

        If there are more than `at_most`, it may leave the later ones.
        """
        ...

    def deliver(self, message: Message) -> None:
        """Put a message into the inbox of its target, ordered by `(time_ps, source, seq)`."""
        ...

    def earliest_sends(self, base_ps: int) -> Iterable[SendBound]:
        """Bounds on the messages to other LPs, if no event is executed before `base_ps`.

        At least one for every channel which the model may use; messages that have not arrived yet
        and are only forwarded do not count.
        """
        ...


@dataclass(frozen=True)
class LoopStatistics:
    """The counts of a loop.

    `null_messages` are frames without messages that were sent, not promises in shared memory.
    `blocked_s` is wall time.
    """

    rounds: int
    events: int
    messages: int
    null_messages: int
    blocked_s: float


class LogicalProcess:
    """Runs `model` to the end of the run. An LP without peers needs no transport.

    `watch` is called every `WATCH_S`, at least every `WAIT_S` while blocked; an error that it
    raises ends the run. The model posts its messages through `sync.post`. `clock` is in seconds of
    wall time.
    """

    def __init__(
        self,
        sync: Sync,
        model: Model,
        transport: Transport | None = None,
        watch: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = now_s,
    ) -> None:
        self._sync = sync
        self._clock = clock
        self._model = model
        self._transport = transport or _NoPeers()
        self._watch = watch
        self._tree = SilenceTree(sync.lp, sync.hosts)
        self._rounds = self._events = self._messages = self._null_messages = 0
        self._blocked_s = 0.0
        self._now_ps = 0
        # Nothing has come since a round after which the next event was not safe.
        self._is_blocked = False
        self._watch_due_s = float("-inf")

    @property
    def now_ps(self) -> int:
        """Every event before this time has been executed."""
        return self._now_ps

    @property
    def next_ps(self) -> int:
        """The time of the next event."""
        return self._model.next_ps()

    @property
    def safe_ps(self) -> int:
        """Every event before this time can be executed."""
        return self._sync.safe_ps

    @property
    def waits_for(self) -> int:
        """The peer whose promise is the least, -1 where there is no peer."""
        return self._sync.least_promise_from

    @property
    def ended(self) -> bool:
        """Whether no LP has anything left to execute."""
        return self._sync.ended

    @property
    def statistics(self) -> LoopStatistics:
        """The counts so far."""
        return LoopStatistics(
            rounds=self._rounds,
            events=self._events,
            messages=self._messages,
            null_messages=self._null_messages,
            blocked_s=self._blocked_s,
        )

    def run(self) -> LoopStatistics:
        """Run until no LP has an event left: all have finished, or all wait for each other."""
        while not self.ended:
            self.round()
        return self.statistics

    def round(self) -> None:
        """Execute one round. A thread that runs several LPs calls it for each in turn."""
        self._look()
        messages = self._drain()
        # The leader of a host receives a report of every LP in it. Without a frame or a grant a
        # step and promises would be those of the round before.
        if self._is_blocked:
            self._wait()
            return
        self._rounds += 1
        # In this order: what has come widens the step, and the promise includes all that the step
        # did.
        self._inject(messages)
        self._step()
        self._promise()
        # With an event before the safe time, the next round has work: waiting would cost time.
        self._is_blocked = self._model.next_ps() >= self._sync.safe_ps
        if self._is_blocked:
            self._wait()

    def _look(self) -> None:
        """Call `watch` if it is due.

        Not only in waits: an abort of the coordinator also ends an LP that never waits. Not in
        every round: it reads a socket, and most rounds are shorter than that.
        """
        now_s = self._clock()
        if now_s >= self._watch_due_s:
            self._watch_due_s = now_s + WATCH_S
            self._watch()

    def _drain(self) -> list[Message]:
        """Take what has arrived; returns the messages for the model."""
        messages: list[Message] = []
        for peer, content in self._transport.poll():
            if isinstance(content, Frame):
                messages += self._sync.receive(peer, content, self._now_ps)
                self._is_blocked = False
            else:
                self._pass_on(self._tree.receive(peer, content))
        return messages

    def _inject(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._model.deliver(message)

    def _step(self) -> None:
        # Never beyond what is safe: an executed event is never undone (conservative, as Chandy and
        # Misra 1979). Optimistic LPs (Jefferson 1985) would have to save the state of whole
        # memories.
        horizon_ps = self._sync.horizon_ps(self._model.next_ps())
        end_s = self._clock() + STEP_S
        events = batch = self._model.run_before(horizon_ps, BATCH_EVENTS)
        while batch >= BATCH_EVENTS and self._clock() < end_s:
            batch = self._model.run_before(horizon_ps, BATCH_EVENTS)
            events += batch
        self._events += events
        self._sync.executed(events)
        # Not the time of the last event: the model has executed everything before the next one.
        self._now_ps = min(horizon_ps, self._model.next_ps())

    def _promise(self) -> None:
        # A message from a peer may still cause an event at the safe time, before the next local
        # one.
        base_ps = min(self._model.next_ps(), self._sync.safe_ps)
        for peer, frame in self._sync.frames(self._model.earliest_sends(base_ps)):
            self._messages += len(frame.messages)
            self._null_messages += self._transport.send(peer, frame) and not frame.messages

    def _wait(self) -> None:
        report = self._sync.silence(self._model.next_ps())
        if report is not None:
            # In a leader the report may complete a grant, so check for work before waiting.
            self._pass_on(self._tree.receive(self._sync.lp, report))
            return
        # Until a frame, a grant or a message of the coordinator arrives.
        begin_s = self._clock()
        self._transport.wait(WAIT_S)
        self._blocked_s += self._clock() - begin_s

    def _pass_on(self, contents: Iterable[tuple[int, Silence]]) -> None:
        """Send what the tree of reports returns, and take what is for this LP."""
        for receiver, content in contents:
            if receiver != self._sync.lp:
                self._transport.send(receiver, content)
            elif isinstance(content, Grant):
                self._sync.grant(content.lbts_ps, of_run=content.of_run)
                self._is_blocked = False
            else:
                self._sync.call()


class _NoPeers:
    """The transport of an LP without peers: nothing is sent, nothing arrives."""

    def send(self, peer: int, content: PeerContent) -> bool:
        raise AssertionError(f"{type(content).__name__} for LP {peer} in a run with one LP")

    def poll(self) -> list[tuple[int, PeerContent]]:
        return []

    def wait(self, timeout_s: float) -> None:
        pass

    def close(self) -> None:
        pass
