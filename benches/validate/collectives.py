"""Group i: the round of a credit, and the sums of all-reduce."""

from itertools import pairwise
from math import ceil

from benches.validate.accesses import CREDIT_BYTES, SLOT_BYTES, TCM_GBS, Accesses, joined
from benches.validate.all_reduce import ELEMENTS, all_reduce
from benches.validate.check import Check
from benches.validate.variant import Variant
from benches.validate.ways import pe_stem

ALGORITHMS = ("ring", "intercube")
SLOTS = 6
PACKET = 256


def collectives(file: Variant) -> list[Check]:
    """All checks of the group."""
    return [*_credits(file), *(_sums(file, algorithm) for algorithm in ALGORITHMS)]


def _credits(file: Variant) -> list[Check]:
    """A ring of one slot: the next slot arrives one round of its credit after the one before it."""
    values = {"packet_bytes": SLOT_BYTES, "control_bytes": CREDIT_BYTES, "sip.cube_mesh": {"w": 2, "h": 1}}
    accesses = Accesses(file.with_values(values))
    form, plan = accesses.form, accesses.plan
    source, target, nbytes = (0, 0), (0, 1), SLOTS * SLOT_BYTES
    arrivals = accesses.arrivals(source, target, ("E", "W"), nbytes, joined("tcm", PACKET, slots=1))[:SLOTS]
    rounds_ps = {after.end_ps - before.end_ps for before, after in pairwise(arrivals)}
    # Out of the ring and into the scratch, through one port of the TCM.
    copy_ps = form.ps("pe.dma.overhead_ns") + 2 * ceil(SLOT_BYTES / form.number(TCM_GBS) * 1000)
    pe = plan.cube.pe(0)
    home = pe_stem(pe)[0] + plan.between((target[1], pe), (source[1], pe)) + pe_stem(pe)[1]
    credit_ps = form.announcement_ps(home)
    expected_ps = accesses.slot_ps(source, target, SLOT_BYTES, "tcm", PACKET) + copy_ps + credit_ps
    says = f"{SLOTS} slots of {SLOT_BYTES >> 10} KiB to the next cube through a ring of one"
    formula = "slot + announcement + copy + credit"
    return [
        Check("i.credit.each", f"{says}: shortest round", formula, expected_ps, min(rounds_ps), 0, "ps"),
        Check("i.credit.all", f"{says}: longest round", formula, expected_ps, max(rounds_ps), 0, "ps"),
    ]


def _sums(file: Variant, algorithm: str) -> Check:
    world = all_reduce(file.text, algorithm)
    elements = file.cubes * ELEMENTS * len(world.returned)
    says = f"{algorithm} all-reduce of int32, {elements:,} elements: those that are wrong"
    return Check(f"i.sums.{algorithm}", says, "the sum, bit by bit", 0, sum(world.returned.values()), 0, "elements")
