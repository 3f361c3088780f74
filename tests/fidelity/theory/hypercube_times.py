"""Time of the kernels over a hypercube of 2^k ranks on an idle ring of SIPs: broadcast, reduce and
all-gather of n bytes in one message a part (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
Collective Communication Operations in MPICH", 2005).
"""

from kernbench.oracle.theory.collectives.all_reduce_times import (
    arrival_ps,
    distances_by_bit,
    exchange_ps,
)
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts


def broadcast_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """Load + the longest path down the binomial tree of rank 0 + store.

    A rank sends to the child with the largest tree first, and stores behind its last message.
    """
    # Binomial tree: rank r has the ranks as children that set one bit below its lowest one.
    distances = distances_by_bit("recursive_doubling", sips)

    def end_ps(rank: int, time_ps: int) -> int:
        ends_ps: list[int] = []
        for bit in _bits_below(rank, sips):
            route = costs.to_sip(distances[rank][bit])
            ends_ps.append(end_ps(rank | 1 << bit, time_ps + arrival_ps(costs, route, nbytes)))
            time_ps += costs.send_ps(nbytes)
        return max([*ends_ps, time_ps + (costs.store_ps(nbytes) if rank else 0)])

    return end_ps(0, costs.load_ps(nbytes))


def reduce_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """Load + the longest path up the same tree, with an addition for each message + store.

    The message of a child that has arrived before it is received is copied then.
    """
    distances = distances_by_bit("recursive_doubling", sips)

    def ready_ps(rank: int) -> int:
        time_ps = costs.load_ps(nbytes)
        for bit in reversed(_bits_below(rank, sips)):
            route = costs.to_sip(distances[rank][bit])
            arrived_ps = ready_ps(rank | 1 << bit) + arrival_ps(costs, route, nbytes)
            waited_ps = time_ps + costs.issue_ps + costs.copy_ps(nbytes)
            time_ps = max(arrived_ps, waited_ps) + costs.add_ps(nbytes)
        return time_ps

    return ready_ps(0) + costs.store_ps(nbytes)


def all_gather_ps(costs: KernelCosts, sips: int, nbytes: int) -> int:
    """Load + sum of (2^b (issue + n/B) + alpha + copy), b < log2(p), + p stores."""
    steps_ps = max(
        sum(
            exchange_ps(costs, distance, *[nbytes] * (1 << bit))
            for bit, distance in enumerate(distances)
        )
        for distances in distances_by_bit("recursive_doubling", sips)
    )
    return costs.load_ps(nbytes) + steps_ps + sips * costs.store_ps(nbytes)


def _bits_below(rank: int, sips: int) -> list[int]:
    """The bits in which a rank sends: those below its lowest one, the highest first."""
    lowest = (rank & -rank).bit_length() - 1 if rank else sips.bit_length() - 1
    return list(reversed(range(lowest)))
