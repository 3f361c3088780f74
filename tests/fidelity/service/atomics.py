"""Group q, atomic operations: one packet that a slice reads, writes and answers."""

from collections.abc import Iterator

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.model.placement import ONE_PE
from tests.fidelity.service.dma_requests import with_wide_links
from tests.fidelity.theory.dma import DmaTimes

_ITEM_BYTES = 4


def atomics(file: TopologyFile) -> list[Check]:
    """Operations on the own slice, where a packet has whole rounds of the channels."""
    rounds = file["hbm.num_pcs"] * file["hbm.burst_bytes"]
    return [] if file["packet_bytes"] % rounds else list(_of_packet(with_wide_links(file)))


def _of_packet(file: TopologyFile) -> Iterator[Check]:
    formulas = {
        "unread": "a store + the wait for the first byte of a read + n/B",
        "read": "the same + n bytes in place of an acknowledgement",
    }
    for name, formula in formulas.items():
        yield Check(
            id=f"q.atomic.{name}",
            text=f"an atomic addition to a packet of the own slice, its old elements {name}",
            formula=formula,
            expected=DmaTimes(file).atomic_ps(is_read=name == "read"),
            measured=_atomic_ps(file, is_read=name == "read"),
            unit="ps",
        )


def _atomic_ps(file: TopologyFile, *, is_read: bool) -> int:
    """The time of the request of a kernel that adds to a packet."""
    count = file["packet_bytes"] // _ITEM_BYTES

    def kernel(x: tl.Pointer) -> None:
        tl.atomic("add", x, tl.full(count, 1, tl.int32), old=is_read)

    def program(_rank: int) -> None:
        torch.launch("atomic", kernel, torch.empty(count, dtype=torch.int32, dp=ONE_PE))

    [(_, record)] = simulate(program, 1, topology=file.text, data=False).of("pe_dma", "atomic add")
    return record.end_ps - record.start_ps
