"""The round trip of a credit, and the sums of all-reduces on the system of the file."""

from itertools import pairwise
from math import nan

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    AllReduce,
    AllReduceQueue,
    outcome_of,
)
from kernbench.oracle.checks.transfers.accesses import (
    CREDIT_BYTES,
    SLOT_BYTES,
    Accesses,
    CubeOfSystem,
    joined,
)
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.errors import InvariantError, IpcqDeadlock

ALGORITHMS = ("ring", "intercube")
ELEMENTS = 512
SLOTS = 6
PACKET_BYTES = 256


def credit_rounds(file: TopologyFile) -> list[Check]:
    """A ring of one slot: a slot arrives one round trip of its credit after the slot before it."""
    values = {
        "packet_bytes": SLOT_BYTES,
        "control_bytes": CREDIT_BYTES,
        "sip.cube_mesh": {"w": 2, "h": 1},
    }
    file = file.with_values(values)
    accesses, costs = Accesses(file), KernelCosts(file, PACKET_BYTES)
    source, target = (0, 0), (0, 1)
    rounds_ps = _rounds_ps(accesses, source, target)
    slot_ps = accesses.slot_ps(source, target, SLOT_BYTES, "tcm", PACKET_BYTES)
    credit_ps = accesses.times.announcement_ps(costs.to_cube(target[1], source[1]))
    text = f"{SLOTS} slots of {SLOT_BYTES >> 10} KiB to the next cube through a ring of one"
    return [
        Check(
            id=f"i.credit.{name}",
            text=f"{text}: {which} round trip",
            formula="slot + announcement + copy + credit",
            expected=slot_ps + costs.copy_ps(SLOT_BYTES) + credit_ps,
            measured=measured_ps,
            unit="ps",
        )
        for name, which, measured_ps in (
            ("each", "shortest", min(rounds_ps)),
            ("all", "longest", max(rounds_ps)),
        )
    ]


def _rounds_ps(accesses: Accesses, source: CubeOfSystem, target: CubeOfSystem) -> set[float]:
    ccl = joined("tcm", PACKET_BYTES, slots=1)
    try:
        arrivals = accesses.arrivals(source, target, ("E", "W"), SLOTS * SLOT_BYTES, ccl)[:SLOTS]
    except (InvariantError, IpcqDeadlock):
        return {nan}
    return {after.end_ps - before.end_ps for before, after in pairwise(arrivals)}


def sums(file: TopologyFile, seed: int) -> list[Check]:
    """All-reduces on PE 0 of every cube of the file."""
    return [_sums(file, algorithm, seed) for algorithm in ALGORITHMS]


def _sums(file: TopologyFile, algorithm: str, seed: int) -> Check:
    outcome = outcome_of(file, AllReduce(algorithm, 1, ELEMENTS, AllReduceQueue(), seed))
    elements = file["system.sips.count"] * file.cubes * ELEMENTS
    text = f"{algorithm} all-reduce of int32, {elements:,} elements: wrong ones"
    return Check(
        id=f"i.sums.{algorithm}",
        text=outcome.described(text),
        formula="the sum modulo 2^32, bit by bit",
        expected=0,
        measured=outcome.wrong,
        unit="elements",
    )
