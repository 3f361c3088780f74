"""The round of a credit, and the sums of all-reduce on the system of the file."""

from itertools import pairwise
from math import ceil, nan

from kernbench.validate.accesses import CREDIT_BYTES, SLOT_BYTES, TCM_GBS, Accesses, joined
from kernbench.validate.all_reduce_runs import AllReduce, Queues, outcome_of
from kernbench.validate.check import Check
from kernbench.validate.variant import Variant
from kernbench.validate.ways import pe_stem
from runtime.core.errors import InvariantError, IpcqDeadlock

ALGORITHMS = ("ring", "intercube")
ELEMENTS = 512
SLOTS = 6
PACKET = 256


def credit_rounds(file: Variant) -> list[Check]:
    """A ring of one slot: the next slot arrives one round of its credit after the one before it."""
    values = {
        "packet_bytes": SLOT_BYTES,
        "control_bytes": CREDIT_BYTES,
        "sip.cube_mesh": {"w": 2, "h": 1},
    }
    accesses = Accesses(file.with_values(values))
    form, plan = accesses.form, accesses.plan
    source, target = (0, 0), (0, 1)
    rounds_ps = _rounds_ps(accesses, source, target)
    # Out of the ring and into the scratch, through one port of the TCM.
    copy_ps = form.ps("pe.dma.overhead_ns") + 2 * ceil(SLOT_BYTES / form.number(TCM_GBS) * 1000)
    pe = plan.cube.pe(0)
    home = pe_stem(pe)[0] + plan.between((target[1], pe), (source[1], pe)) + pe_stem(pe)[1]
    credit_ps = form.announcement_ps(home)
    expected_ps = accesses.slot_ps(source, target, SLOT_BYTES, "tcm", PACKET) + copy_ps + credit_ps
    says = f"{SLOTS} slots of {SLOT_BYTES >> 10} KiB to the next cube through a ring of one"
    formula = "slot + announcement + copy + credit"
    return [
        Check(
            "i.credit.each",
            f"{says}: shortest round",
            formula,
            expected_ps,
            min(rounds_ps),
            0,
            "ps",
        ),
        Check(
            "i.credit.all", f"{says}: longest round", formula, expected_ps, max(rounds_ps), 0, "ps"
        ),
    ]


def _rounds_ps(accesses: Accesses, source: tuple[int, int], target: tuple[int, int]) -> set[float]:
    ccl = joined("tcm", PACKET, slots=1)
    try:
        arrivals = accesses.arrivals(source, target, ("E", "W"), SLOTS * SLOT_BYTES, ccl)[:SLOTS]
    except (InvariantError, IpcqDeadlock):
        return {nan}
    return {after.end_ps - before.end_ps for before, after in pairwise(arrivals)}


def sums(file: Variant, seed: int) -> list[Check]:
    """On PE 0 of every cube of the file."""
    return [_sums(file, algorithm, seed) for algorithm in ALGORITHMS]


def _sums(file: Variant, algorithm: str, seed: int) -> Check:
    outcome = outcome_of(file, AllReduce(algorithm, 1, ELEMENTS, Queues(), seed))
    elements = file["system.sips.count"] * file.cubes * ELEMENTS
    says = outcome.said(
        f"{algorithm} all-reduce of int32, {elements:,} elements: those that are wrong"
    )
    return Check(
        f"i.sums.{algorithm}",
        says,
        "the sum modulo 2^32, bit by bit",
        0,
        outcome.wrong,
        0,
        "elements",
    )
