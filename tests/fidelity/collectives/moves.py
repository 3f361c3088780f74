"""Gather, scatter and all-to-all: the bytes on all links between SIPs, and bounds of the time."""

from collections.abc import Callable, Mapping

from kernbench import torch
from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    AllReduceOutcome,
    AllReduceQueue,
    closed_form_machine,
    on_direct_links,
    outcome_of_program,
)
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.paths.routes import UCIE_GBS
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile

SIPS = (2, 4)
SLOTS_A_PART = 8
"""Slots in the part of a rank: even, since the ring halves parts for the opposite rank."""

dist = torch.distributed
Tensors = tuple[torch.Tensor, list[torch.Tensor]]


def _gather(part: torch.Tensor, parts: list[torch.Tensor]) -> None:
    dist.gather(part, parts if dist.get_rank() == 0 else None)


def _scatter(part: torch.Tensor, parts: list[torch.Tensor]) -> None:
    dist.scatter(part, parts if dist.get_rank() == 0 else None)


def _equal_parts(part: torch.Tensor, parts: list[torch.Tensor]) -> None:
    numel = len(parts) * part.numel()
    source, target = (torch.empty(numel, dtype=torch.int32, dp=part.policy) for _ in range(2))
    dist.all_to_all_single(target, source)


def _lists(part: torch.Tensor, parts: list[torch.Tensor]) -> None:
    sent = [torch.empty(part.numel(), dtype=torch.int32, dp=part.policy) for _ in parts]
    dist.all_to_all(parts, sent)


CALLS: Mapping[str, Callable[[torch.Tensor, list[torch.Tensor]], None]] = {
    "gather": _gather,
    "scatter": _scatter,
    "alltoall": _equal_parts,
    "pairwise": _lists,
}
ROOTED = frozenset({"gather", "scatter"})


def moves(file: TopologyFile) -> list[Check]:
    """Both checks of every collective, on rings of 2 and of 4 SIPs with one PE each."""
    file = closed_form_machine(file)
    return [check for name in CALLS for sips in SIPS for check in _checks(file, name, sips)]


def _checks(file: TopologyFile, name: str, sips: int) -> list[Check]:
    file = on_direct_links(file, sips)
    queue = AllReduceQueue(slot_bytes=file["packet_bytes"])
    part_bytes = SLOTS_A_PART * queue.slot_bytes
    outcome = _outcome(file, name, queue, part_bytes // ITEM_BYTES)
    distances = [min(rank, sips - rank) for rank in range(sips)]
    # The parts of one rank cross the links to all ranks; without a root, those of every rank do.
    crossings = sum(distances) * (1 if name in ROOTED else sips)
    slot_bytes = queue.slot_bytes + queue.credit_bytes
    # A ring of two has one link in each direction, a longer one two links at every SIP.
    links = min(sips - 1, 2) * (1 if name in ROOTED else sips)
    busiest_bytes = (sips - 1 if name in ROOTED else crossings) * part_bytes
    text = outcome.described(f"{name} on {sips} SIPs, {part_bytes} B a part")
    return [
        Check(
            id=f"i.moves.{name}.bytes.{sips}",
            text=f"{text}: bytes on all links",
            formula="parts x distances x (n + credits)",
            expected=crossings * SLOTS_A_PART * slot_bytes,
            measured=sum(outcome.between_sips.values()),
            unit="B",
        ),
        Check(
            id=f"i.moves.{name}.least.{sips}",
            text=f"{text}: lower bound of the time",
            formula=(
                "(p-1) n/(links of the root B) <= T"
                if name in ROOTED
                else "parts x distances x n/(all links B) <= T"
            ),
            expected=outcome.span_ps,
            measured=float(bytes_ps(busiest_bytes, links * file.number(UCIE_GBS))),
            unit="ps",
            relation=Relation.AT_MOST,
        ),
    ]


def _outcome(
    file: TopologyFile, name: str, queue: AllReduceQueue, elements: int
) -> AllReduceOutcome:
    def program(rank: int) -> int:
        dist.init_process_group("ahbm", algorithm="ring")
        one_pe = torch.DPPolicy(num_cubes=1, num_pes=1)
        part, *parts = (
            torch.empty(elements, dtype=torch.int32, dp=one_pe)
            for _ in range(dist.get_world_size() + 1)
        )
        CALLS[name](part, parts)
        torch.ahbm.synchronize()
        return 0

    return outcome_of_program(file, program, queue, data=False)
