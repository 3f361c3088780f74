"""Group q, gathers: the cost of a row, rows in flight, and the bandwidth of long rows."""

from collections.abc import Iterator

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.model.placement import ONE_PE
from tests.fidelity.service.dma_requests import with_wide_links
from tests.fidelity.theory.dma import DmaTimes

ROWS = 24
ROW_NS = 500.0
"""Time of a descriptor: longer than a round trip, so that one row is in flight."""
LONG_PACKETS = 40
"""Packets of a long row, which takes longer to send than the descriptor of the next."""
LONG_ROWS = 3


def gathers(file: TopologyFile) -> list[Check]:
    """Gathers of rows of the own slice, as one request each."""
    return [*_by_row(file), *_windows(with_wide_links(file))]


def _by_row(file: TopologyFile) -> Iterator[Check]:
    """Rows of one burst, far apart and in no order."""
    file = file.with_values({"pe.dma.gather_row_ns": ROW_NS})
    burst = file["hbm.burst_bytes"]
    for name, count in {"one": 1, "many": ROWS}.items():
        # 7 and the number of rows have no common divisor: each row comes once.
        listed = [7 * index % ROWS for index in range(count)]
        yield Check(
            id=f"q.gather.row.{name}",
            text=f"a gather of {count} rows of {burst} B, {ROW_NS:g} ns for a descriptor",
            formula="list/B + k descriptors + the read of a row",
            expected=DmaTimes(file).gather_ps(count, burst),
            measured=_gather_ps(file, listed, burst, 5 * burst),
            unit="ps",
        )


def _windows(file: TopologyFile) -> Iterator[Check]:
    """Short rows on all channels in turn, some in flight; rows of many packets at full rate."""
    burst, packet_bytes = file["hbm.burst_bytes"], file["packet_bytes"]
    for window in sorted({1, min(4, file["hbm.num_pcs"])}):
        narrow = file.with_values({"pe.dma.outstanding": window})
        yield Check(
            id=f"q.gather.window.{window}",
            text=f"a gather of {ROWS} rows of {burst} B, {window} packets in flight",
            formula="a round trip for each w rows",
            expected=DmaTimes(narrow).windowed_gather_ps(ROWS, burst, window),
            measured=_gather_ps(narrow, range(ROWS), burst, burst),
            unit="ps",
        )
    if packet_bytes % (file["hbm.num_pcs"] * burst) == 0:
        row_bytes = LONG_PACKETS * packet_bytes
        window = DmaTimes(file).full_window
        full = file.with_values({"pe.dma.outstanding": window, "pe.dma.gather_row_ns": ROW_NS})
        yield Check(
            id="q.gather.long",
            text=f"a gather of {LONG_ROWS} rows of {LONG_PACKETS} packets each, in falling order",
            formula="a descriptor + n/B",
            expected=DmaTimes(full).long_gather_ps(LONG_ROWS, row_bytes),
            measured=_gather_ps(full, range(LONG_ROWS)[::-1], row_bytes, row_bytes),
            unit="ps",
        )


def _gather_ps(file: TopologyFile, rows: range | list[int], row_bytes: int, pitch: int) -> int:
    """The time of the request of a kernel that gathers rows of bytes."""

    def kernel(x: tl.Pointer) -> None:
        tl.gather(x, rows, row_bytes, strides=(pitch, 1))

    def program(_rank: int) -> None:
        x = torch.empty(max(rows) * pitch + row_bytes, dtype=torch.int8, dp=ONE_PE)
        torch.launch("gather", kernel, x)

    [(_, record)] = simulate(program, 1, topology=file.text, data=False).of("pe_dma", "gather")
    return record.end_ps - record.start_ps
