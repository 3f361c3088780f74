"""All-reduces with random parameters: lower bound of the time, bytes on links, sums, credits."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_checks import (
    least_time,
    loads,
    sums,
)
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    CREDIT_BYTES,
    AllReduce,
    AllReduceOutcome,
    AllReduceQueue,
    on_direct_links,
    outcome_of,
    with_few_pes,
    with_scratch,
)
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import Random, seeded

ALGORITHMS = (
    "ring",
    "intercube",
    "ring_naive",
    "mesh",
    "tree",
    "hierarchical",
    "recursive_doubling",
    "halving_doubling",
)
KINDS = ("tcm", "hbm", "sram")
MOST_SIPS = 6
BYTES_LOG2 = 4, 16
"""Bytes per PE: smallest and largest, as powers of two."""
SCRATCH_BYTES = 1 << 20
"""Scratch memory for all copies of a block of `MOST_SIPS` messages of a ring."""


def drawn(file: TopologyFile, seed: int, algorithm: str) -> list[Check]:
    """One algorithm with receive rings in each kind of memory."""
    rng = seeded(seed, ALGORITHMS.index(algorithm))
    file = with_scratch(file.with_values({"control_bytes": CREDIT_BYTES}), SCRATCH_BYTES)
    return [check for kind in KINDS for check in _drawn(file, rng, algorithm, kind)]


def _drawn(file: TopologyFile, rng: Random, algorithm: str, kind: str) -> Iterator[Check]:
    sips = rng.randint(2, MOST_SIPS)
    pes = 1 if algorithm == "intercube" else rng.choice((1, 2))
    cube_mesh = {"w": rng.choice((1, 2)), "h": rng.choice((1, 2))}
    file = on_direct_links(file, sips).with_values({"sip.cube_mesh": cube_mesh})
    # `hierarchical` runs on all PEs of a cube.
    file = with_few_pes(file) if algorithm == "hierarchical" else file
    pes = file.pes_per_cube if algorithm == "hierarchical" else min(pes, file.pes_per_cube)
    queue = AllReduceQueue(kind=kind, packet_bytes=rng.choice((1024, 4096)))
    elements = round(2 ** rng.uniform(*BYTES_LOG2)) // ITEM_BYTES
    case = AllReduce(algorithm, pes, elements, queue, seed=rng.randrange(2**32))
    outcome = outcome_of(file, case)
    ranks = f"{algorithm} on {sips} x {file.cubes} x {pes} PEs"
    text = outcome.described(f"{ranks}, {elements} elements each, rings in {kind}")
    check_id = f"i.drawn.{algorithm}.{kind}"
    yield least_time(file, case, outcome, f"{check_id}.least", text)
    yield loads(file, case, outcome, f"{check_id}.bytes", text)
    yield sums(outcome, f"{check_id}.sums", text)
    yield credits_home(outcome, f"{check_id}.home", text)


def credits_home(outcome: AllReduceOutcome, check_id: str, text: str) -> Check:
    """The number of credits that are not back at their senders at the end."""
    return Check(
        id=check_id,
        text=f"{text}: credits not returned at the end",
        formula="0",
        expected=0,
        measured=outcome.away,
        unit="credits",
    )
