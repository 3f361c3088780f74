"""Random small kernels of three PEs, and a search over all orders of their calls.

A kernel is a list of calls for each PE: accesses to cells of a tensor, operations in flight and
their waits, messages in a ring of two slots, and barriers. Each cell is written by one PE alone,
since two that write it are refused. The search has no clocks: its states are what has begun and
ended, and a race is a state in which two accesses to a cell, one a write, are both under way.
"""

from collections import defaultdict
from random import Random
from typing import NamedTuple

from runtime import tl
from runtime.language.value import Pointer

PES, CELLS, CELL, SLOTS = 3, 3, 16, 2
"""Cells of 16 elements: cell n is written by PE n alone."""
_NEXT = {"E": 1, "W": -1}


class PeCall(NamedTuple):
    """A call: `cell` of an access, `direction` of a message, `of` the call that a wait is for."""

    kind: str
    cell: int = -1
    direction: str = ""
    of: int = -1


Calls = tuple[tuple[PeCall, ...], ...]
"""The calls of each PE."""
AccessId = tuple[int, int]
"""A PE and the number of its call."""


def random_calls(random: Random, most: int = 36) -> Calls:
    """Calls that end in every order: they are drawn one after the other, as one order of them."""
    calls: list[list[PeCall]] = [[] for _ in range(PES)]
    open_calls: list[dict[int, PeCall]] = [{} for _ in range(PES)]
    full = defaultdict[tuple[int, str], int](int)
    for _ in range(random.randrange(8, most)):
        pe = random.randrange(PES)
        kind = random.choice(
            ("load", "load", "store", "store", "load_async", "store_async")
            + ("send", "send", "send_async")
            + ("recv",) * 4
            + ("recv_async", "wait", "wait", "barrier")
        )
        _draw(random, kind, pe, calls, open_calls, full)
    for (pe, direction), count in full.items():
        # A message without a receive would stay in the ring.
        calls[pe] += [PeCall("recv", direction=direction)] * count
    return tuple(map(tuple, calls))


def random_turns(random: Random) -> Calls:
    """Calls in which PEs store to one cell in turn. The turn passes by messages or by a credit, and
    now and then too early, or not at all.
    """
    calls: list[list[PeCall]] = [[] for _ in range(PES)]
    late: list[list[int]] = [[] for _ in range(PES)]
    turn = random.randrange(PES)
    for _ in range(random.randrange(2, 5)):
        _draw_store(random, calls[turn], late[turn])
        turn = _pass_turn(random, calls, late, turn)
    _draw_store(random, calls[turn], late[turn])
    for own, numbers in zip(calls, late, strict=True):
        own += [PeCall("wait", of=number) for number in numbers]
    return tuple(map(tuple, calls))


def _draw_store(random: Random, own: list[PeCall], late: list[int]) -> None:
    """A store to the cell, one of three in flight, with a wait for it at once or late."""
    # Operations of a PE in flight do not share the cell.
    own += [PeCall("wait", of=number) for number in late]
    late.clear()
    if random.randrange(3):
        own.append(PeCall("store", cell=0))
        return
    late.append(len(own))
    own.append(PeCall("store_async", cell=0))
    if random.randrange(4):
        own.append(PeCall("wait", of=late.pop()))


def _pass_turn(random: Random, calls: list[list[PeCall]], late: list[list[int]], turn: int) -> int:
    """Messages from the PE whose turn it is; returns the next one."""
    direction, opposite = random.choice(("EW", "WE"))
    peer, third = (turn + _NEXT[direction]) % PES, (turn + _NEXT[opposite]) % PES
    way = random.randrange(6)
    if way == 0:
        # Of one message more than the ring has slots, the end of its send is behind a receive.
        count = SLOTS + random.randrange(2)
        calls[peer] += [PeCall("send", direction=opposite)] * count
        calls[turn] += [PeCall("recv", direction=direction)] * count
    elif way == 1:
        calls[turn].append(PeCall("send", direction=opposite))
        calls[third].append(PeCall("recv", direction=direction))
        calls[third].append(PeCall("send", direction=opposite))
        calls[peer].append(PeCall("recv", direction=direction))
    else:
        calls[turn].append(PeCall("send", direction=direction))
        if way == 2:
            # The peer may store before it has waited for the message.
            late[peer].append(len(calls[peer]))
            calls[peer].append(PeCall("recv_async", direction=opposite))
        else:
            calls[peer].append(PeCall("recv", direction=opposite))
    return peer if random.randrange(12) else random.randrange(PES)


def _draw(
    random: Random,
    kind: str,
    pe: int,
    calls: list[list[PeCall]],
    open_calls: list[dict[int, PeCall]],
    full: dict[tuple[int, str], int],
) -> None:
    """Add a call of a kind, if the language allows it and every order of the calls ends."""
    if kind == "barrier":
        for number, own in enumerate(calls):
            own += [PeCall("wait", of=each) for each in open_calls[number]]
            open_calls[number].clear()
            own.append(PeCall(kind))
        return
    direction = random.choice("EW")
    peer = (pe + _NEXT[direction]) % PES
    opposite = "W" if direction == "E" else "E"
    if kind.startswith("send") and full[peer, opposite] < SLOTS:
        full[peer, opposite] += 1
        _begin(calls[pe], open_calls[pe], PeCall(kind, direction=direction))
    elif kind.startswith("recv") and full[pe, direction]:
        full[pe, direction] -= 1
        _begin(calls[pe], open_calls[pe], PeCall(kind, direction=direction))
    elif kind == "wait" and open_calls[pe]:
        of = random.choice(list(open_calls[pe]))
        del open_calls[pe][of]
        calls[pe].append(PeCall(kind, of=of))
    elif kind[:4] in ("load", "stor"):
        cell = pe if kind.startswith("store") else random.randrange(CELLS)
        busy = {each.cell: each.kind for each in open_calls[pe].values()}
        # Operations of a PE in flight do not share what one of them writes.
        if cell not in busy or (kind[:4] == "load" and busy[cell][:4] == "load"):
            _begin(calls[pe], open_calls[pe], PeCall(kind, cell=cell))


def _begin(own: list[PeCall], opened: dict[int, PeCall], call: PeCall) -> None:
    if call.kind.endswith("async"):
        opened[len(own)] = call
    own.append(call)


def kernel_of(calls: Calls) -> object:
    """The kernel that makes these calls."""

    def kernel(x: Pointer) -> None:
        own, flights = calls[tl.program_id(0)], {}
        block, token = tl.full(CELL, 1.0, tl.float32), tl.full(1, 1.0, tl.float32)
        for number, (kind, cell, direction, of) in enumerate(own):
            place = x + cell * CELL
            made = {
                "load": lambda p=place: tl.load(p, CELL),
                "store": lambda p=place: tl.store(p, block),
                "load_async": lambda p=place: tl.load_async(p, CELL),
                "store_async": lambda p=place: tl.store_async(p, block),
                "send": lambda d=direction: tl.send(d, token),
                "send_async": lambda d=direction: tl.send_async(d, token),
                "recv": lambda d=direction: tl.recv(d, 1, tl.float32),
                "recv_async": lambda d=direction: tl.recv_async(d, 1, tl.float32),
                "wait": lambda f=of: tl.wait(flights[f]),
                "barrier": tl.barrier,
            }
            flights[number] = made[kind]()

    return kernel


class _State(NamedTuple):
    """A state of a kernel: the next call of each PE, the accesses and operations that are under way
    or have ended, the sends that wait for each ring, and its messages that are sent and taken.
    """

    places: tuple[int, ...]
    active: frozenset[AccessId]
    ended: frozenset[AccessId]
    leaving: tuple[tuple[AccessId, ...], ...]
    sent: tuple[int, ...]
    taken: tuple[int, ...]


def races_in_all_orders(calls: Calls) -> set[frozenset[AccessId]]:
    """The pairs of accesses that are both under way in some order."""
    start = _State((0,) * PES, frozenset(), frozenset(), ((),) * 6, (0,) * 6, (0,) * 6)
    seen, waiting, races = {start}, [start], set[frozenset[AccessId]]()
    while waiting:
        state = waiting.pop()
        active = sorted(state.active)
        for index, one in enumerate(active):
            for other in active[index + 1 :]:
                first, second = calls[one[0]][one[1]], calls[other[0]][other[1]]
                writes = "store" in first.kind + second.kind
                if one[0] != other[0] and first.cell == second.cell >= 0 and writes:
                    races.add(frozenset((one, other)))
        for later in _next_states(calls, state):
            if later not in seen:
                seen.add(later)
                waiting.append(later)
    return races


def _ring(pe: int, direction: str) -> int:
    """The number of the ring in which a PE receives from a direction."""
    return pe * 2 + (direction == "W")


def _next_states(calls: Calls, state: _State) -> list[_State]:
    later = [each for pe in range(PES) if (each := _stepped(calls, state, pe)) is not None]
    for each in state.active:
        call = calls[each[0]][each[1]]
        if call.kind in ("load_async", "store_async"):
            later.append(_ended(state, each))
        elif call.kind == "recv_async" and _may_take(calls, state, each):
            later.append(_took(_ended(state, each), _ring(each[0], call.direction)))
        elif call.kind == "send_async":
            left = _left(state, each, _ring_of_peer(each[0], call.direction))
            later += [] if left is None else [left]
    met = [
        place < len(own) and own[place].kind == "barrier"
        for own, place in zip(calls, state.places, strict=True)
    ]
    if all(met):
        later.append(state._replace(places=tuple(place + 1 for place in state.places)))
    return later


def _ended(state: _State, access: AccessId) -> _State:
    return state._replace(active=state.active - {access}, ended=state.ended | {access})


def _took(state: _State, ring: int) -> _State:
    taken = list(state.taken)
    taken[ring] += 1
    return state._replace(taken=tuple(taken))


def _may_take(calls: Calls, state: _State, receive: AccessId) -> bool:
    """Whether a receive is the first that waits at its ring, and there is a message."""
    pe, number = receive
    direction = calls[pe][number].direction
    ring = _ring(pe, direction)
    earlier = [
        each
        for each in state.active
        if each[0] == pe
        and each[1] < number
        and calls[pe][each[1]] == PeCall("recv_async", direction=direction)
    ]
    return not earlier and state.sent[ring] > state.taken[ring]


def _stepped(  # noqa: PLR0911 - one for each kind of call
    calls: Calls, state: _State, pe: int
) -> _State | None:
    """The state after the next step of a PE, None if it waits."""
    place = state.places[pe]
    if place == len(calls[pe]):
        return None
    call, own = calls[pe][place], (pe, place)
    passed = state._replace(
        places=tuple(each + (number == pe) for number, each in enumerate(state.places))
    )
    if call.kind in ("load", "store"):
        if own in state.active:
            return passed._replace(active=state.active - {own})
        return state._replace(active=state.active | {own})
    if call.kind == "send_async":
        passed = _leaving(passed, own, _ring_of_peer(pe, call.direction))
    if call.kind.endswith("async"):
        return passed._replace(active=state.active | {own})
    if call.kind == "send":
        return _sent(passed, _ring_of_peer(pe, call.direction))
    if call.kind == "recv" and _may_take(calls, state, own):
        return _took(passed, _ring(pe, call.direction))
    return passed if call.kind == "wait" and (pe, call.of) in state.ended else None


def _ring_of_peer(pe: int, direction: str) -> int:
    """The number of the ring into which a PE sends in a direction."""
    return _ring((pe + _NEXT[direction]) % PES, "W" if direction == "E" else "E")


def _leaving(state: _State, send: AccessId, ring: int) -> _State:
    leaving = list(state.leaving)
    leaving[ring] = (*leaving[ring], send)
    return state._replace(leaving=tuple(leaving))


def _left(state: _State, send: AccessId, ring: int) -> _State | None:
    """The state after a send in flight, None while others are before it, or the ring is full."""
    first, *others = state.leaving[ring]
    if first != send or _is_full(state, ring):
        return None
    leaving = list(state.leaving)
    leaving[ring] = tuple(others)
    return _one_more(_ended(state, send)._replace(leaving=tuple(leaving)), ring)


def _sent(state: _State, ring: int) -> _State | None:
    """The state after a send, None while others are before it, or the ring is full."""
    if state.leaving[ring] or _is_full(state, ring):
        return None
    return _one_more(state, ring)


def _is_full(state: _State, ring: int) -> bool:
    return state.sent[ring] - state.taken[ring] >= SLOTS


def _one_more(state: _State, ring: int) -> _State:
    sent = list(state.sent)
    sent[ring] += 1
    return state._replace(sent=tuple(sent))
