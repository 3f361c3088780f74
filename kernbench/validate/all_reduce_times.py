"""What the kernel of each all-reduce takes on an idle system, when messages go through one at a time.

There are p ranks on a ring of SIPs, or on a grid for `mesh`, with n bytes each, in one message. Alpha is a message without
bytes, over as many SIPs as it crosses; a PE does one thing after the other. Steps are those of R. Thakur, R. Rabenseifner,
W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernbench.validate.all_reduce_traffic import SipGrid, grid_of
from kernbench.validate.closed_form import Way
from kernbench.validate.kernel_costs import KernelCosts


@dataclass(frozen=True)
class Theory:
    """`time_ps(costs, p, n)` and the formula that it follows.

    `exact_for` are the p for which it holds to the picosecond where n/B is shorter than a crossing from SIP to SIP. `large_for`
    has the tolerance by p for large n, 0 for exact.
    """

    formula: str
    time_ps: Callable[[KernelCosts, int, int], int]
    exact_for: tuple[int, ...]
    large_for: dict[int, float]


def ring_naive_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """T = (p-1) (issue + alpha + n/B + copy + add) + load + store.

    All messages are asked for at first: that is the issue.
    """
    asked_ps = (sips - 1) * costs.issue_ps
    step_ps = _arrival_ps(costs, costs.to_sip(), nbytes) + costs.add_ps(nbytes)
    return asked_ps + costs.load_ps(nbytes) + (sips - 1) * step_ps + costs.store_ps(nbytes)


def tree_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """From the leaf that is ready last up to rank 0, and down to the leaf that has the result last: 2 log2(p) messages.

    A rank adds what comes from its children one after the other, and gives the result to one after the other.
    """
    ring = SipGrid(sips)

    def children(rank: int) -> list[int]:
        return [child for child in (2 * rank + 1, 2 * rank + 2) if child < sips]

    def there_ps(rank: int, child: int) -> int:
        return _arrival_ps(costs, costs.to_sip(ring.distance(rank, child)), nbytes)

    def ready_ps(rank: int) -> int:
        time_ps = (len(children(rank)) + (rank > 0)) * costs.issue_ps + costs.load_ps(nbytes)
        for child in children(rank):
            time_ps = max(time_ps, ready_ps(child) + there_ps(rank, child)) + costs.add_ps(nbytes)
        return time_ps

    def ended_ps(rank: int, time_ps: int) -> int:
        ends_ps: list[int] = []
        for child in children(rank):
            ends_ps.append(ended_ps(child, time_ps + there_ps(rank, child)))
            time_ps += costs.sent_ps(nbytes)
        return max([*ends_ps, time_ps + costs.store_ps(nbytes)])

    return ended_ps(0, ready_ps(0))


def recursive_doubling_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """T = load + log2(p) (issue + alpha + n/B + copy + add) + store.

    Of three ranks, the last one gives its bytes to rank 0 before, and has the result from there after.
    """
    steps_ps = sum(
        _exchange_ps(costs, distance, nbytes) + costs.add_ps(nbytes)
        for distance in _distances(sips)
    )
    if sips & sips - 1 == 0:
        return costs.load_ps(nbytes) + steps_ps + costs.store_ps(nbytes)
    assert sips == 3
    folded_ps = (
        costs.load_ps(nbytes) + _arrival_ps(costs, costs.to_sip(), nbytes) + costs.add_ps(nbytes)
    )
    # What rank 1 has sent was there before: it is copied while the own elements are sent.
    beside_ps = max(costs.copy_ps(nbytes), costs.sent_ps(nbytes))
    last_ps = (
        costs.issue_ps
        + beside_ps
        + costs.add_ps(nbytes)
        + _arrival_ps(costs, costs.to_sip(), nbytes)
    )
    return folded_ps + max(last_ps, steps_ps) + costs.store_ps(nbytes)


def halving_doubling_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """T = load + sum over b < log2(p) of (issue + alpha + n/2^(b+1)/B + copy + add), the way back without add, stores.

    On the way back a rank sends up to three messages a step: its own chunk, and what lies before and behind it.
    """
    time_ps, chunk = costs.load_ps(nbytes), nbytes // sips
    for bit, distance in enumerate(_distances(sips)):
        half = nbytes >> bit + 1
        time_ps += _exchange_ps(costs, distance, half) + costs.add_ps(half)
    for step, distance in enumerate(reversed(_distances(sips))):
        time_ps += _exchange_ps(costs, distance, *_around_chunk(chunk, chunk << step))
    return time_ps + sum(map(costs.store_ps, _around_chunk(chunk, nbytes)))


def mesh_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """On 2 x 1 or 2 x 2 ranks: for each dimension a reduce-scatter and an all-gather of one step each, then the stores.

    2 (W-1) steps of n/W and 2 (H-1) of n/(W H), and where there are columns, what they made of the part is put together.
    """
    width, height = grid_of(sips)
    assert width == 2
    parts = [nbytes // width, nbytes // width // height][:height]
    exchanges_ps = sum(2 * _exchange_ps(costs, 1, part) + costs.add_ps(part) for part in parts)
    joined_ps = costs.join_ps(parts[0]) if height == 2 else 0
    return costs.load_ps(nbytes) + exchanges_ps + joined_ps + width * costs.store_ps(parts[0])


def hierarchical_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """PE 1 to PE 0, cube 0 to cube 1, 2(p-1) steps of n/p round the ring of SIPs, and the same way back.

    As far as a cube has two PEs and a SIP two cubes. What comes up is added, parts of the ring are put together.
    """
    up_ps = down_ps = 0
    if costs.pes == 2:
        up_ps += _arrival_ps(costs, costs.to_pe(1, 0), nbytes) + costs.add_ps(nbytes)
        down_ps += _arrival_ps(costs, costs.to_pe(0, 1), nbytes)
    if costs.cubes == 2:
        up_ps += _arrival_ps(costs, costs.to_cube(0, 1), nbytes) + costs.add_ps(nbytes)
        down_ps += _arrival_ps(costs, costs.to_cube(1, 0), nbytes)
    part = nbytes // sips
    ring_ps = (sips - 1) * (
        2 * _arrival_ps(costs, costs.to_sip(), part) + costs.add_ps(part)
    ) + costs.join_ps(nbytes)
    return costs.load_ps(nbytes) + up_ps + ring_ps + down_ps + costs.store_ps(nbytes)


def _arrival_ps(costs: KernelCosts, way: Way, nbytes: int) -> int:
    """From the command that sends to the values being there: alpha + n/B + copy."""
    return costs.message_ps(way, nbytes) + costs.copy_ps(nbytes)


def _exchange_ps(costs: KernelCosts, distance: int, *parts: int) -> int:
    """Ask for what comes from so many SIPs away, send there, wait: issue + alpha + n/B + copy. All ranks do at once.

    Of several messages behind each other, the last one comes when its command lets it or when the bytes of all are there.
    """
    *before, last = parts
    commands_ps = sum(map(costs.sent_ps, before)) + costs.passed_on_ps(distance, last)
    arrived_ps = max(commands_ps, costs.passed_on_ps(distance, sum(parts)))
    return len(parts) * costs.issue_ps + arrived_ps + costs.copy_ps(last)


def _distances(sips: int) -> list[int]:
    """Between ranks that differ in bit 0, 1, ... within the largest power of two, on a ring."""
    return [SipGrid(sips).distance(0, 1 << bit) for bit in range(sips.bit_length() - 1)]


def _around_chunk(chunk: int, nbytes: int) -> list[int]:
    """The parts of so many bytes before a chunk, the chunk, and behind it, where it lies in the midst if it can."""
    if nbytes == chunk:
        return [chunk]
    return [chunk, chunk] if nbytes == 2 * chunk else [chunk, chunk, nbytes - 2 * chunk]


THEORIES: dict[str, Theory] = {
    "ring_naive": Theory(
        "load + (p-1) (issue + alpha + n/B + copy + add) + store",
        ring_naive_ps,
        (2, 3, 4, 8),
        {2: 0, 4: 0},
    ),
    "tree": Theory(
        "issue + load + log2(p) (alpha + n/B + copy + add), log2(p) (alpha + n/B + copy) + store",
        tree_ps,
        (2, 3, 4, 8),
        {2: 0},
    ),
    "recursive_doubling": Theory(
        "load + log2(p) (issue + alpha + n/B + copy + add) + store",
        recursive_doubling_ps,
        (2, 3, 4, 8),
        {2: 0, 4: 0},
    ),
    "halving_doubling": Theory(
        "load + 2 log2(p) (issue + alpha + copy) + 2(p-1)/p n/B + adds + stores",
        halving_doubling_ps,
        (2, 4, 8),
        {2: 0, 4: 0.05},
    ),
    "mesh": Theory(
        "load + (2(W-1) + 2(H-1)) (issue + alpha + copy) + bytes/B + adds + stores",
        mesh_ps,
        (2, 4),
        {2: 0, 4: 0},
    ),
    "hierarchical": Theory(
        "load + up + 2(p-1) (alpha + n/p/B + copy) + (p-1) add + down + store",
        hierarchical_ps,
        (2, 3, 4),
        {2: 0, 3: 0},
    ),
}
"""By algorithm."""
