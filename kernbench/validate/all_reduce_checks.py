"""What holds for every all-reduce: no less time than any must take, the bytes on every link, the right sums, credits home."""

from math import nan

from kernbench.validate.accesses import Accesses
from kernbench.validate.all_reduce_runs import ITEM_BYTES, AllReduce, Outcome
from kernbench.validate.all_reduce_traffic import SipGrid, link_loads
from kernbench.validate.check import Bound, Check
from kernbench.validate.collective_theory import PeToNextSip
from kernbench.validate.variant import Variant

FROM_SIP_TO_SIP = frozenset({"ring", "ring_naive", "intercube", "hierarchical"})
"""Algorithms in which a rank sends to the next one alone, with all its bytes over one link."""
EXCHANGE_ON_ROOT = frozenset({"intercube", "hierarchical"})
"""Algorithms in which one PE of a SIP exchanges with others for all of them."""


def least_time(file: Variant, case: AllReduce, outcome: Outcome, check_id: str, says: str) -> Check:
    """Whatever is done inside the SIPs: the bytes that one of them must send, and a message to the farthest one.

    All of them together send 2(p-1) n at least, so one sends 2(p-1)/p n.
    """
    grid, theory = SipGrid.of(file), PeToNextSip(Accesses(file), case.queues)
    nbytes = _exchanging(file, case) * case.elements * ITEM_BYTES
    if case.algorithm in FROM_SIP_TO_SIP:
        links, way_ps = 1, grid.diameter * theory.alpha_ps
        formula = "max(2(p-1)/p n/B, diameter alpha) <= T"
    else:
        # SIPs on the way pass a message on without any PE. One cube has one link to the IO chiplet, whatever that has.
        links, way_ps = (
            min(grid.most_neighbours, file.cubes),
            theory.costs.alpha_ps(theory.costs.to_sip(grid.diameter)),
        )
        formula = "max(2(p-1)/p n/(links B), alpha of the diameter) <= T"
    wire_ps = theory.wire_ps(grid.sips, nbytes) / links
    says = f"{says}: least time, of {'the bytes' if wire_ps > way_ps else 'the way'}"
    return Check(
        check_id, says, formula, outcome.span_ps, max(wire_ps, way_ps), 0, "ps", Bound.AT_MOST
    )


def loads(file: Variant, case: AllReduce, outcome: Outcome, check_id: str, says: str) -> Check:
    """One row for all links between SIPs, with the numbers of the one that is farthest off."""
    exchanging, formula = _exchanging(file, case), f"{FORMULAS[case.algorithm]} + credits"
    one = link_loads(case.algorithm, SipGrid.of(file), case.elements, case.queues)
    expected, measured = (
        {link: exchanging * load for link, load in one.items()},
        outcome.between_sips,
    )
    link = max(expected, key=lambda each: abs(measured.get(each, expected[each]) - expected[each]))
    says = f"{says}: bytes from SIP {link[0]} to SIP {link[1]}"
    return Check(check_id, says, formula, expected[link], measured.get(link, nan), 0, "B")


def sums(outcome: Outcome, check_id: str, says: str) -> Check:
    """Elements that are wrong, of any int32."""
    return Check(
        check_id,
        f"{says}: sums that are wrong",
        "modulo 2^32, bit by bit",
        0,
        outcome.wrong,
        0,
        "elements",
    )


def credits_home(outcome: Outcome, check_id: str, says: str) -> Check:
    """Credits that are not with their senders at the end."""
    return Check(check_id, f"{says}: credits that are not home", "0", 0, outcome.away, 0, "credits")


def _exchanging(file: Variant, case: AllReduce) -> int:
    """How many PEs of a SIP exchange with other SIPs: all that take part, or the one of the root cube."""
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
"""What a rank sends; a message is on all links of its way."""
