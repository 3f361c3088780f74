"""Checks of any all-reduce: lower bound of the time, bytes on links, sums, returned credits."""

from math import nan

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.collectives.all_reduce_runs import AllReduce, AllReduceOutcome
from kernbench.oracle.theory.collectives.all_reduce_traffic import link_loads
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile

TO_NEIGHBOURS_ONLY = frozenset({"ring", "ring_naive", "intercube", "hierarchical"})
"""Algorithms in which a rank sends only to the next rank, with all its bytes over one link."""
EXCHANGE_ON_ROOT = frozenset({"intercube", "hierarchical"})
"""Algorithms in which one PE of a SIP exchanges with other SIPs on behalf of all."""


def least_time(
    file: TopologyFile, case: AllReduce, outcome: AllReduceOutcome, check_id: str, text: str
) -> Check:
    """No run is faster than the bytes of one SIP, or than one message to the farthest SIP.

    All SIPs together send at least 2(p-1) n, so at least one of them sends 2(p-1)/p n.
    """
    grid, theory = SipGrid.of(file), RingAllReduceTimes(file, case.queue)
    nbytes = _exchanging_pes(file, case) * case.elements * ITEM_BYTES
    if case.algorithm in TO_NEIGHBOURS_ONLY:
        links, latency_ps = 1, grid.diameter * theory.link.alpha_ps
        formula = "max(2(p-1)/p n/B, diameter alpha) <= T"
    else:
        # SIPs between two ranks forward a message without any PE: one alpha for the whole route.
        # A cube has one link to the IO chiplet, however many links the IO chiplet has.
        links = min(grid.most_neighbours, file.cubes)
        latency_ps = theory.costs.alpha_ps(theory.costs.to_sip(grid.diameter))
        formula = "max(2(p-1)/p n/(links B), alpha of the diameter) <= T"
    bytes_ps = theory.link_ps(grid.sips, nbytes) / links
    limit = "bandwidth" if bytes_ps > latency_ps else "latency"
    return Check(
        id=check_id,
        text=f"{text}: lower bound of the time, by {limit}",
        formula=formula,
        expected=outcome.span_ps,
        measured=float(max(bytes_ps, latency_ps)),
        unit="ps",
        relation=Relation.AT_MOST,
    )


def loads(
    file: TopologyFile, case: AllReduce, outcome: AllReduceOutcome, check_id: str, text: str
) -> Check:
    """The bytes on all links between SIPs: one row, for the link that deviates most."""
    pes, grid = _exchanging_pes(file, case), SipGrid.of(file)
    of_one_pe = link_loads(case.algorithm, grid, case.elements, case.queue)
    expected = {link: pes * load for link, load in of_one_pe.items()}
    measured = outcome.between_sips
    link = max(expected, key=lambda each: abs(measured.get(each, expected[each]) - expected[each]))
    return Check(
        id=check_id,
        text=f"{text}: bytes from SIP {link[0]} to SIP {link[1]}",
        formula=f"{FORMULAS[case.algorithm]} + credits",
        expected=expected[link],
        measured=measured.get(link, nan),
        unit="B",
    )


def sums(outcome: AllReduceOutcome, check_id: str, text: str) -> Check:
    """The number of wrong elements."""
    return Check(
        id=check_id,
        text=f"{text}: wrong sums",
        formula="modulo 2^32, bit by bit",
        expected=0,
        measured=outcome.wrong,
        unit="elements",
    )


def _exchanging_pes(file: TopologyFile, case: AllReduce) -> int:
    """PEs of a SIP that exchange with other SIPs: one on the root cube, or all that take part."""
    return 1 if case.algorithm in EXCHANGE_ON_ROOT else file.cubes * case.pes


FORMULAS = {
    "ring": "2(p-1)/p n",
    "intercube": "2(p-1)/p n",
    "hierarchical": "2(p-1)/p n",
    "ring_naive": "(p-1) n",
    "tree": "n up and down",
    "recursive_doubling": "n a bit",
    "halving_doubling": "n/2^b a bit b = 0 ...",
    "mesh": "n, n/W",
}
"""Bytes that a rank sends; a message occupies all links of its path."""
