"""All-reduces drawn at random: no less time than any must take, exactly the bytes on every link, the right sums."""

from collections.abc import Iterator

from kernbench.validate.all_reduce_checks import credits_home, least_time, loads, sums
from kernbench.validate.all_reduce_runs import (
    CREDIT_BYTES,
    ITEM_BYTES,
    AllReduce,
    Queues,
    on_direct_links,
    outcome_of,
    with_few_pes,
    with_scratch,
)
from kernbench.validate.check import Check
from kernbench.validate.variant import Variant
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
"""Of a PE, from and to."""
SCRATCH_BYTES = 1 << 20
"""Room for all copies of a block of `MOST_SIPS` messages of a ring."""


def drawn(file: Variant, seed: int, algorithm: str) -> list[Check]:
    """An algorithm with every kind of buffer."""
    rng = seeded(seed, ALGORITHMS.index(algorithm))
    file = with_scratch(file.with_values({"control_bytes": CREDIT_BYTES}), SCRATCH_BYTES)
    return [
        check
        for kind in KINDS
        for check in _drawn(file, rng, f"i.drawn.{algorithm}.{kind}", algorithm, kind)
    ]


def _drawn(file: Variant, rng: Random, check_id: str, algorithm: str, kind: str) -> Iterator[Check]:
    sips, pes = rng.randint(2, MOST_SIPS), 1 if algorithm == "intercube" else rng.choice((1, 2))
    file = on_direct_links(file, sips).with_values(
        {"sip.cube_mesh": {"w": rng.choice((1, 2)), "h": rng.choice((1, 2))}}
    )
    # It needs all PEs of a cube.
    file = with_few_pes(file) if algorithm == "hierarchical" else file
    pes = file.pes_per_cube if algorithm == "hierarchical" else min(pes, file.pes_per_cube)
    queues = Queues(kind=kind, packet_bytes=rng.choice((1024, 4096)))
    elements = round(2 ** rng.uniform(*BYTES_LOG2)) // ITEM_BYTES
    case = AllReduce(algorithm, pes, elements, queues, seed=rng.randrange(2**32))
    outcome = outcome_of(file, case)
    says = outcome.said(
        f"{algorithm} on {sips} x {file.cubes} x {pes} PEs, {elements} elements each, rings in {kind}"
    )
    yield least_time(file, case, outcome, f"{check_id}.least", says)
    yield loads(file, case, outcome, f"{check_id}.bytes", says)
    yield sums(outcome, f"{check_id}.sums", says)
    yield credits_home(outcome, f"{check_id}.home", says)
