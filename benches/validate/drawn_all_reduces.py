"""All-reduces drawn at random: no less time than any must take, exactly the bytes on every link, the right sums."""

from collections.abc import Iterator
from math import nan

from benches.validate.accesses import Accesses
from benches.validate.all_reduce_runs import (
    CREDIT_BYTES,
    ITEM_BYTES,
    AllReduce,
    Outcome,
    Queues,
    on_direct_links,
    outcome_of,
    with_scratch,
)
from benches.validate.check import Bound, Check
from benches.validate.collective_theory import PeToNextSip, ring_loads
from benches.validate.variant import Variant
from runtime.rng import Random, seeded

ROUNDS = 2
ALGORITHMS = ("ring", "intercube")
KINDS = ("tcm", "hbm", "sram")
MOST_SIPS = 6
BYTES_LOG2 = 4, 16
"""Of a PE, from and to."""
SCRATCH_BYTES = 1 << 20
"""Room for all copies of a block of `MOST_SIPS` messages of a ring."""


def drawn(file: Variant, seed: int) -> list[Check]:
    """Every algorithm with every kind of buffer, `ROUNDS` times."""
    rng = seeded(seed)
    file = with_scratch(file.with_values({"control_bytes": CREDIT_BYTES}), SCRATCH_BYTES)
    chosen = [(algorithm, kind) for _ in range(ROUNDS) for algorithm in ALGORITHMS for kind in KINDS]
    return [check for index, each in enumerate(chosen) for check in _drawn(file, rng, f"i.drawn.{index:02}", *each)]


def _drawn(file: Variant, rng: Random, check_id: str, algorithm: str, kind: str) -> Iterator[Check]:
    sips, pes = rng.randint(2, MOST_SIPS), rng.choice((1, 2)) if algorithm == "ring" else 1
    file = on_direct_links(file, sips).with_values({"sip.cube_mesh": {"w": rng.choice((1, 2)), "h": rng.choice((1, 2))}})
    pes = min(pes, file.pes_per_cube)
    queues = Queues(kind=kind, packet_bytes=rng.choice((1024, 4096)))
    elements = round(2 ** rng.uniform(*BYTES_LOG2)) // ITEM_BYTES
    case = AllReduce(algorithm, pes, elements, queues, seed=rng.randrange(2**32))
    outcome = outcome_of(file, case)
    says = outcome.said(f"{algorithm} on {sips} x {file.cubes} x {pes} PEs, {elements} elements each, rings in {kind}")
    yield _least_time(file, case, outcome, check_id, says)
    yield _loads(file, case, outcome, check_id, says)
    yield Check(f"{check_id}.sums", f"{says}: sums that are wrong", "modulo 2^32, bit by bit", 0, outcome.wrong, 0, "elements")
    yield Check(f"{check_id}.home", f"{says}: credits that are not home", "0", 0, outcome.away, 0, "credits")


def _least_time(file: Variant, case: AllReduce, outcome: Outcome, check_id: str, says: str) -> Check:
    """Whatever is done inside the SIPs: the bytes on a link, and a message to the SIP that is farthest away."""
    sips, theory = int(file["system.sips.count"]), PeToNextSip(Accesses(file), case.queues)
    wire_ps, way_ps = theory.wire_ps(sips, _rings(file, case) * case.elements * ITEM_BYTES), sips // 2 * theory.alpha_ps
    larger = "the bytes" if wire_ps > way_ps else "the way"
    formula = "max(2(p-1)/p n/B, diameter alpha) <= T"
    least_ps, says = max(wire_ps, way_ps), f"{says}: least time, of {larger}"
    return Check(f"{check_id}.least", says, formula, outcome.span_ps, least_ps, 0, "ps", Bound.AT_MOST)


def _loads(file: Variant, case: AllReduce, outcome: Outcome, check_id: str, says: str) -> Check:
    """One row for all links between SIPs, with the numbers of the one that is farthest off."""
    sips, rings = int(file["system.sips.count"]), _rings(file, case)
    block = case.queues.ring_bytes // ITEM_BYTES * (sips if case.algorithm == "ring" else 1)
    expected = {link: rings * load for link, load in ring_loads(sips, case.elements, block, case.queues).items()}
    measured = outcome.between_sips
    link = max(expected, key=lambda each: abs(measured.get(each, expected[each]) - expected[each]))
    says = f"{says}: bytes from SIP {link[0]} to SIP {link[1]}"
    return Check(f"{check_id}.bytes", says, "2(p-1)/p n + credits", expected[link], measured.get(link, nan), 0, "B")


def _rings(file: Variant, case: AllReduce) -> int:
    """How many PEs of a SIP exchange with the next one: all that take part, or the one of the root cube."""
    return file.cubes * case.pes if case.algorithm == "ring" else 1
