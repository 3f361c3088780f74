"""Broadcast, reduce and all-gather over a hypercube: time, results, and bytes between SIPs."""

from collections.abc import Callable
from math import ceil

import numpy as np

from kernbench import torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    AllReduceQueue,
    closed_form_machine,
    on_direct_links,
    outcome_of_program,
)
from kernbench.oracle.theory.collectives.all_reduce_times import distances_by_bit
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.theory.hypercube_times import (
    all_gather_ps,
    broadcast_ps,
    reduce_ps,
)

SIPS = (2, 4, 8)
ELEMENTS = 8
"""Elements of one part: messages so short that no two of them compete for a link."""

dist = torch.distributed


def _broadcast(own: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    dist.broadcast(own, 0)
    return own


def _reduce(own: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    dist.reduce(own, 0)
    return own


def _all_gather(own: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    dist.all_gather_into_tensor(parts, own)
    return parts


Call = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
FORMS: dict[str, tuple[Call, Callable[[KernelCosts, int, int], int], str]] = {
    "broadcast": (_broadcast, broadcast_ps, "load + log2(p) (alpha + n/B + copy) + store"),
    "reduce": (_reduce, reduce_ps, "load + log2(p) (alpha + n/B + copy + add) + store"),
    "all_gather": (
        _all_gather,
        all_gather_ps,
        "load + sum of (2^b (issue + n/B) + alpha + copy) + p stores",
    ),
}
"""The call, which returns the tensor it changes, and the closed form of its time, by collective."""


def hypercubes(file: TopologyFile) -> list[Check]:
    """All checks of each collective, on rings of 2, 4 and 8 SIPs with one PE each."""
    file = closed_form_machine(file)
    return [check for name in FORMS for sips in SIPS for check in _checks(file, name, sips)]


def _checks(file: TopologyFile, name: str, sips: int) -> list[Check]:
    file, queue = on_direct_links(file, sips), AllReduceQueue()
    call, time_ps, formula = FORMS[name]

    def program(rank: int) -> int:
        dist.init_process_group("ahbm", algorithm="recursive_doubling")
        numbers = np.arange(ELEMENTS, dtype=np.int32)
        own, parts = (
            torch.from_numpy(numbers + rank),
            torch.zeros(sips * ELEMENTS, dtype=torch.int32),
        )
        return int(np.count_nonzero(call(own, parts).numpy() != _right(name, rank, sips)))

    outcome = outcome_of_program(file, program, queue, data=True)
    text = outcome.described(f"{name} over a hypercube of {sips} SIPs, {ELEMENTS} elements a part")
    nbytes = ELEMENTS * ITEM_BYTES
    return [
        Check(
            id=f"i.hypercube.{name}.time.{sips}",
            text=text,
            formula=formula,
            expected=time_ps(KernelCosts(file, queue.packet_bytes), sips, nbytes),
            measured=outcome.span_ps,
            unit="ps",
        ),
        Check(
            id=f"i.hypercube.{name}.bytes.{sips}",
            text=f"{text}: bytes on all links",
            formula="messages x distances x (n + credits)",
            expected=_crossings(name, sips) * _message_bytes(nbytes, queue),
            measured=sum(outcome.between_sips.values()),
            unit="B",
        ),
        Check(
            id=f"i.hypercube.{name}.right.{sips}",
            text=f"{text}: wrong elements",
            formula="integers, bit by bit",
            expected=0,
            measured=outcome.wrong,
            unit="elements",
        ),
    ]


def _crossings(name: str, sips: int) -> int:
    """Links that the messages cross, over all ranks."""
    of_each = distances_by_bit("recursive_doubling", sips)
    if name == "all_gather":
        return sum(
            distance << bit for distances in of_each for bit, distance in enumerate(distances)
        )
    # Each rank but the root has one message, in its lowest bit.
    return sum(of_each[rank][(rank & -rank).bit_length() - 1] for rank in range(1, sips))


def _message_bytes(nbytes: int, queue: AllReduceQueue) -> int:
    return nbytes + queue.credit_bytes * ceil(nbytes / queue.slot_bytes)


def _right(name: str, rank: int, sips: int) -> np.ndarray:
    numbers = np.arange(ELEMENTS, dtype=np.int32)
    if name == "all_gather":
        return np.concatenate([numbers + each for each in range(sips)])
    if name == "broadcast":
        return numbers
    return numbers + rank if rank else sips * numbers + sum(range(sips))
