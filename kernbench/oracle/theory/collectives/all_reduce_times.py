"""Time of the kernel of each all-reduce on an idle system, if messages follow one after the other.

There are p ranks on a ring of SIPs (`mesh`: on a grid) with n bytes each, in one message. alpha is
a message without bytes over the links which it crosses. A PE executes one command after the other.
The steps are those of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
Communication Operations in MPICH", 2005.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernbench.oracle.theory.collectives.rank_orders import sips_by_number
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.routes import Route
from kernbench.oracle.theory.paths.sip_grid import SipGrid, grid_of


@dataclass(frozen=True)
class AllReduceForm:
    """`time_ps(costs, p, n)` and the formula which it follows.

    `exact_for` are the p for which it is exact where n/B is shorter than a crossing from SIP to
    SIP. `large_for` maps p to the tolerance for large n, 0 for exact.
    """

    formula: str
    time_ps: Callable[[KernelCosts, int, int], int]
    exact_for: tuple[int, ...]
    large_for: dict[int, float]


def ring_naive_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """T = (p-1) (issue + alpha + n/B + copy + add) + load + store.

    The kernel posts all its receives first: p-1 times issue.
    """
    posted_ps = (sips - 1) * costs.issue_ps
    step_ps = arrival_ps(costs, costs.to_sip(), nbytes) + costs.add_ps(nbytes)
    return posted_ps + costs.load_ps(nbytes) + (sips - 1) * step_ps + costs.store_ps(nbytes)


def tree_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """2 log2(p) messages: from the leaf ready last up to rank 0, down to the leaf served last.

    A rank receives from its children one after the other, and sends to them one after the other.
    """
    ring = SipGrid(sips)
    order = sips_by_number("tree", ring)

    # The tree in level order, as a binary heap: the children of rank r are 2r + 1 and 2r + 2.
    def children(rank: int) -> list[int]:
        return [child for child in (2 * rank + 1, 2 * rank + 2) if child < sips]

    def message_ps(rank: int, child: int) -> int:
        return arrival_ps(costs, costs.to_sip(ring.distance(order[rank], order[child])), nbytes)

    def ready_ps(rank: int) -> int:
        # Receives from the children and from the parent are posted before anything else.
        time_ps = (len(children(rank)) + (rank > 0)) * costs.issue_ps + costs.load_ps(nbytes)
        for child in children(rank):
            received_ps = max(time_ps, ready_ps(child) + message_ps(rank, child))
            time_ps = received_ps + costs.add_ps(nbytes)
        return time_ps

    def end_ps(rank: int, time_ps: int) -> int:
        ends_ps: list[int] = []
        for child in children(rank):
            ends_ps.append(end_ps(child, time_ps + message_ps(rank, child)))
            time_ps += costs.send_ps(nbytes)
        return max([*ends_ps, time_ps + costs.store_ps(nbytes)])

    return end_ps(0, ready_ps(0))


def recursive_doubling_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """T = load + log2(p) (issue + alpha + n/B + copy + add) + store.

    Of three ranks, the last one sends its bytes to rank 0 first and receives the result at the end.
    """
    # Partners have had partners at equal distances before: they begin every step together.
    steps_ps = max(
        sum(exchange_ps(costs, distance, nbytes) + costs.add_ps(nbytes) for distance in distances)
        for distances in distances_by_bit("recursive_doubling", sips)
    )
    load_ps, store_ps = costs.load_ps(nbytes), costs.store_ps(nbytes)
    if sips & sips - 1 == 0:
        return load_ps + steps_ps + store_ps
    assert sips == 3
    folded_ps, add_ps = arrival_ps(costs, costs.to_sip(), nbytes), costs.add_ps(nbytes)
    # The message of rank 1 has already arrived: it is copied while the own elements are sent.
    copy_ps = max(costs.copy_ps(nbytes), costs.send_ps(nbytes))
    result_ps = costs.issue_ps + copy_ps + add_ps + folded_ps
    return load_ps + folded_ps + add_ps + max(result_ps, steps_ps) + store_ps


def halving_doubling_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """T = load + sum of (issue + alpha + n/2^(b+1)/B + add) + the same without add + store.

    The gather repeats the steps in reverse order. Over bits 1 and 0 nothing is copied: what arrives
    is stored from its slots, and over bit 1 apart from what is sent on with it. A release of slots
    takes an issue.
    """
    time_ps = max(
        _halved_ps(costs, distances, nbytes) + _doubled_ps(costs, distances, nbytes)
        for distances in distances_by_bit("halving_doubling", sips)
    )
    return costs.load_ps(nbytes) + time_ps


def _halved_ps(costs: KernelCosts, distances: list[int], nbytes: int) -> int:
    """Reduce-scatter: what remains halves in each step, and is added where it arrives."""
    halves = [nbytes >> bit + 1 for bit in range(len(distances))]
    # Recursive halving. Two issues: the receive is posted before the send, and the slots of the
    # message are released behind the addition.
    return sum(
        2 * costs.issue_ps + costs.forwarded_ps(distance, half) + costs.add_ps(half)
        for distance, half in zip(distances, halves, strict=True)
    )


def _doubled_ps(costs: KernelCosts, distances: list[int], nbytes: int) -> int:
    """All-gather, and the stores."""
    time_ps, issue_ps = 0, costs.issue_ps
    # Between the two messages over bit 0.
    left_ps = max(costs.left_ps(nbytes // 4), issue_ps)
    for bit, distance in reversed(list(enumerate(distances))):
        half = nbytes >> bit + 1
        if bit > 1:
            time_ps += exchange_ps(costs, distance, half)
        elif bit == 1 or len(distances) == 1:
            # The store of the own part is a command before the exchange.
            time_ps += costs.store_command_ps + issue_ps + costs.forwarded_ps(distance, half)
        else:
            # Likewise of what bit 1 has brought; then two messages, one behind the other.
            arrived_ps = left_ps + costs.forwarded_ps(distance, half // 2)
            time_ps += costs.store_command_ps + 2 * issue_ps + arrived_ps
    # The messages over bit 0 are stored one after the other. All that is left is to release them,
    # and what bit 1 has brought.
    pieces = min(len(distances), 2)
    delay_ps = (pieces - 1) * max(costs.store_command_ps - left_ps, 0)
    releases_ps = (1 if pieces == 1 else 3) * issue_ps
    return time_ps + delay_ps + costs.store_ps(nbytes // 2 // pieces) + releases_ps


def mesh_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """Time on 2 x 1 or 2 x 2 ranks: a reduce-scatter and an all-gather per dimension, a step each.

    2 (W-1) steps of n/W and 2 (H-1) of n/(W H), then the stores. Where there are columns, their
    results are joined to the part of the row first.
    """
    width, height = grid_of(sips)
    assert width == 2
    parts = [nbytes // width, nbytes // width // height][:height]
    # A line of two ranks: one exchange is the reduce-scatter, the other one the all-gather.
    exchanges_ps = sum(2 * exchange_ps(costs, 1, part) + costs.add_ps(part) for part in parts)
    join_ps = costs.join_ps(parts[0]) if height == 2 else 0
    return costs.load_ps(nbytes) + exchanges_ps + join_ps + width * costs.store_ps(parts[0])


def hierarchical_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """PE 1 to PE 0, cube 0 to cube 1, 2(p-1) steps of n/p on the ring of SIPs, and back down.

    For cubes of up to two PEs and SIPs of up to two cubes. Each message on the way up is added; the
    parts of the ring are joined.
    """
    up_ps = down_ps = 0
    # Levels from the inside out: PEs of a cube, cubes of a SIP, then the ring of SIPs.
    if costs.pes == 2:
        up_ps += arrival_ps(costs, costs.to_pe(1, 0), nbytes) + costs.add_ps(nbytes)
        down_ps += arrival_ps(costs, costs.to_pe(0, 1), nbytes)
    if costs.cubes == 2:
        up_ps += arrival_ps(costs, costs.to_cube(0, 1), nbytes) + costs.add_ps(nbytes)
        down_ps += arrival_ps(costs, costs.to_cube(1, 0), nbytes)
    part = nbytes // sips
    step_ps = 2 * arrival_ps(costs, costs.to_sip(), part) + costs.add_ps(part)
    ring_ps = (sips - 1) * step_ps + costs.join_ps(nbytes)
    return costs.load_ps(nbytes) + up_ps + ring_ps + down_ps + costs.store_ps(nbytes)


def arrival_ps(costs: KernelCosts, route: Route, nbytes: int) -> int:
    """Alpha + n/B + copy: from the command that sends until the receiver can use the values."""
    return costs.message_ps(route, nbytes) + costs.copy_ps(nbytes)


def exchange_ps(costs: KernelCosts, distance: int, *parts: int) -> int:
    """Issue + alpha + n/B + copy: post the receives, send, wait; all ranks do so at once.

    The last of several messages arrives when its command is issued in time, or when the bytes of
    all messages have passed the link: the later of both.
    """
    *before, last = parts
    commands_ps = sum(map(costs.send_ps, before)) + costs.forwarded_ps(distance, last)
    arrived_ps = max(commands_ps, costs.forwarded_ps(distance, sum(parts)))
    return len(parts) * costs.issue_ps + arrived_ps + costs.copy_ps(last)


def distances_by_bit(algorithm: str, sips: int) -> list[list[int]]:
    """Links from each number of a hypercube to those which differ in bit 0, 1, ... on a ring."""
    ring, inside = SipGrid(sips), 1 << sips.bit_length() - 1
    order = sips_by_number(algorithm, ring)
    return [
        [
            ring.distance(order[number], order[number ^ 1 << bit])
            for bit in range(inside.bit_length() - 1)
        ]
        for number in range(inside)
    ]


ALL_REDUCE_FORMS: dict[str, AllReduceForm] = {
    "ring_naive": AllReduceForm(
        "load + (p-1) (issue + alpha + n/B + copy + add) + store",
        ring_naive_ps,
        exact_for=(2, 3, 4, 8),
        large_for={2: 0, 4: 0},
    ),
    "tree": AllReduceForm(
        "issue + load + log2(p) (alpha + n/B + copy + add), log2(p) (alpha + n/B + copy) + store",
        tree_ps,
        exact_for=(2, 3, 4, 8),
        large_for={2: 0},
    ),
    "recursive_doubling": AllReduceForm(
        "load + log2(p) (issue + alpha + n/B + copy + add) + store",
        recursive_doubling_ps,
        exact_for=(2, 3, 4, 8),
        large_for={2: 0, 4: 0},
    ),
    "halving_doubling": AllReduceForm(
        "load + 2 log2(p) (issue + alpha) + 2(p-1)/p n/B + adds + store",
        halving_doubling_ps,
        exact_for=(2, 4, 8),
        # A large one has many blocks, which overlap: group i.blocks.
        large_for={},
    ),
    "mesh": AllReduceForm(
        "load + (2(W-1) + 2(H-1)) (issue + alpha + copy) + bytes/B + adds + stores",
        mesh_ps,
        exact_for=(2, 4),
        large_for={2: 0, 4: 0},
    ),
    "hierarchical": AllReduceForm(
        "load + up + 2(p-1) (alpha + n/p/B + copy) + (p-1) add + down + store",
        hierarchical_ps,
        exact_for=(2, 3, 4),
        large_for={2: 0, 3: 0},
    ),
}
"""Closed forms of the times, by algorithm."""
