"""A random model of entities and links, which can be divided over LPs in every possible way.

Every entity logs what it executes. What it does next depends on its own random stream alone, so its
log must be the same for every split, schedule and delivery delay, if and only if it executes its
events in the total order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from sys import maxsize

from runtime.core.rng import seeded
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Message
from sip_node.pdes.loop import LogicalProcess
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sender import Sender
from sip_node.pdes.sync import Sync
from sip_node.pdes.transport import Transport

REMOTE, LOCAL = 0, 1


@dataclass(frozen=True)
class Link:
    """A path from one entity to another: `path_ps` inside the sender's LP, then `lookahead_ps` on
    the way.
    """

    source: int
    target: int
    lookahead_ps: int
    path_ps: int = 0


@dataclass(frozen=True)
class World:
    """`lp_of[entity]`; each entity starts with one event, and sends or works at most `budget`
    times. `hosts[lp]`; empty for one host.
    """

    lp_of: tuple[int, ...]
    links: tuple[Link, ...]
    seed: int
    budget: int = 6
    gap_ps: int = 0
    hosts: tuple[int, ...] = ()

    @property
    def lps(self) -> int:
        return max(self.lp_of) + 1

    def in_one_lp(self) -> "World":
        return World((0,) * len(self.lp_of), self.links, self.seed, self.budget, self.gap_ps)

    def lookaheads(self, lp: int) -> tuple[dict[int, int], dict[int, int]]:
        """Lookaheads of the in-channels and the out-channels of `lp`: the least of the links that
        share the channel.
        """
        into: dict[int, int] = {}
        out: dict[int, int] = {}
        for link in self.links:
            a, b = self.lp_of[link.source], self.lp_of[link.target]
            if a != b and b == lp:
                into[a] = min(into.get(a, NEVER_PS), link.lookahead_ps)
            if a != b and a == lp:
                out[b] = min(out.get(b, NEVER_PS), link.lookahead_ps)
        return into, out


@dataclass
class Entity:
    number: int
    budget: int
    links: list[tuple[Link, Sender | None]]
    seed: int
    quiet_ps: int = 0
    sent: dict[int, int] = field(default_factory=dict)
    log: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = seeded(self.seed, self.number)


class WorldModel:
    """The entities of one LP on one event list, ordered by (time, remote before local, source,
    seq).
    """

    def __init__(
        self, world: World, lp: int, post: Callable[[int, Message], None], *, promises: bool = True
    ) -> None:
        self._world, self._lp, self._post, self._promises = world, lp, post, promises
        self._senders: list[tuple[int, Sender]] = []
        self._events: list[tuple[int, int, int, int, int, Callable[[], None] | None]] = []
        self._serial = count()
        self.entities = {
            number: Entity(number, world.budget, self._links_of(number), world.seed)
            for number, home in enumerate(world.lp_of)
            if home == lp
        }
        for entity in self.entities.values():
            self._schedule(entity.rng.choice((0, 0, 1, 7)), entity, None)

    def next_ps(self) -> int:
        return self._events[0][0] if self._events else NEVER_PS

    def run_before(self, bound_ps: int, at_most: int = maxsize) -> int:
        executed = 0
        while self.next_ps() < bound_ps and executed < at_most:
            time_ps, kind, source, seq, number, action = heappop(self._events)
            executed += 1
            entity = self.entities[number]
            if action is not None:
                action()
            else:
                entity.log.append((time_ps, kind, source, seq if kind == REMOTE else 0))
                self._act(entity, time_ps)
        return executed

    def deliver(self, message: Message) -> None:
        heappush(
            self._events,
            (message.time_ps, REMOTE, message.source, message.seq, message.target, None),
        )

    def earliest_sends(self, base_ps: int) -> Iterator[SendBound]:
        if self._promises:
            for peer, sender in self._senders:
                yield SendBound(peer, 0, sender.earliest_send_ps(base_ps))
        else:
            for peer in self._world.lookaheads(self._lp)[1]:
                yield SendBound(peer, 0, base_ps)

    def _links_of(self, number: int) -> list[tuple[Link, Sender | None]]:
        found: list[tuple[Link, Sender | None]] = []
        for link in self._world.links:
            if link.source == number:
                peer = self._world.lp_of[link.target]
                sender = None if peer == self._lp else Sender(link.path_ps)
                if sender is not None:
                    self._senders.append((peer, sender))
                found.append((link, sender))
        return found

    def _schedule(self, time_ps: int, entity: Entity, action: Callable[[], None] | None) -> None:
        heappush(
            self._events, (time_ps, LOCAL, entity.number, next(self._serial), entity.number, action)
        )

    def _act(self, entity: Entity, now_ps: int) -> None:
        """Send, continue or pause, by the random stream of the entity; in a pause only receive."""
        if entity.budget == 0 or now_ps < entity.quiet_ps:
            return
        entity.budget -= 1
        for link, sender in entity.links:
            if entity.rng.random() < 0.6:
                self._depart(entity, link, sender, now_ps)
        delay_ps = entity.rng.choice((1, 2, 5, self._world.gap_ps or 3))
        if entity.rng.random() < 0.3:
            entity.quiet_ps = now_ps + delay_ps
            for _, sender in entity.links:
                if sender is not None:
                    sender.quiet_until(entity.quiet_ps)
        self._schedule(now_ps + delay_ps, entity, None)

    def _depart(self, entity: Entity, link: Link, sender: Sender | None, now_ps: int) -> None:
        """The message reaches the channel's entrance after the path, possibly held up on the
        way.
        """
        entrance_ps = now_ps + link.path_ps
        held_up_ps = entity.rng.choice((0, 0, 1))
        arrival_ps = (
            entrance_ps + held_up_ps + link.lookahead_ps + entity.rng.choice((0, 0, 0, 1, 4))
        )
        seq = entity.sent[link.target] = entity.sent.get(link.target, 0) + 1
        message = Message(arrival_ps, entity.number, link.target, seq)
        if sender is None:
            self._schedule(entrance_ps + held_up_ps, entity, lambda: self.deliver(message))
            return
        sender.departed(entrance_ps)

        def enter() -> None:
            sender.entered(entrance_ps)
            self._post(self._world.lp_of[link.target], message)

        self._schedule(entrance_ps + held_up_ps, entity, enter)


@dataclass(frozen=True)
class Run:
    """The result of a run: the log of every entity, and the loops."""

    logs: dict[int, list[tuple[int, int, int, int]]]
    lps: tuple[LogicalProcess, ...]

    @property
    def rounds(self) -> int:
        return sum(lp.statistics.rounds for lp in self.lps)

    @property
    def messages(self) -> int:
        return sum(lp.statistics.messages for lp in self.lps)

    @property
    def null_messages(self) -> int:
        return sum(lp.statistics.null_messages for lp in self.lps)


def run_world(
    world: World,
    transports: list[Transport],
    next_lp: Callable[[], int],
    *,
    promises: bool = True,
    max_rounds: int = 10_000,
) -> Run:
    """Run all LPs of `world` in this thread; `next_lp` returns the LP whose turn it is."""
    syncs = [
        Sync(lp, world.lps, *world.lookaheads(lp), hosts=world.hosts or None)
        for lp in range(world.lps)
    ]
    models = [WorldModel(world, lp, sync.post, promises=promises) for lp, sync in enumerate(syncs)]
    loops = [LogicalProcess(*parts) for parts in zip(syncs, models, transports, strict=True)]
    for _ in range(max_rounds):
        if all(loop.ended for loop in loops):
            break
        loop = loops[next_lp()]
        if not loop.ended:
            loop.round()
    else:
        raise AssertionError(f"{world} has not ended after {max_rounds} rounds")
    logs = {number: entity.log for model in models for number, entity in model.entities.items()}
    return Run(logs, tuple(loops))


def reference(world: World) -> dict[int, list[tuple[int, int, int, int]]]:
    """The logs of one event list without any synchronisation."""
    model = WorldModel(world.in_one_lp(), 0, post=_nobody)
    model.run_before(NEVER_PS)
    return {number: entity.log for number, entity in model.entities.items()}


def _nobody(peer: int, message: Message) -> None:
    raise AssertionError(f"{message} for LP {peer} in a world of one LP")
