"""Counts of the operations of a run, from its op log."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import Struct

from runtime.core.trace import OpRecord


class OpLogSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of products, of messages between PEs, and of requests of kernels to memory."""

    gemm_count: int
    ipcq_send_count: int
    ipcq_recv_count: int
    dma_read_count: int
    dma_write_count: int

    @classmethod
    def of(cls, records: Iterable[OpRecord]) -> "OpLogSummary":
        """The counts of an op log in the order of its times."""
        records = list(records)
        found = Counter((record.engine, record.name) for record in records)
        return cls(
            gemm_count=product_count(records),
            ipcq_send_count=found["pe_dma", "ipcq_send"],
            ipcq_recv_count=found["pe_dma", "ipcq_recv"],
            dma_read_count=found["pe_dma", "load"],
            dma_write_count=found["pe_dma", "store"],
        )


def product_count(records: Iterable[OpRecord]) -> int:
    """The number of products whose results are values in TCM.

    The log has a record of every tile. The tiles of a result are stored row by row of tiles: a tile
    that does not lie where the result before it goes on is the first one of the next product. (A
    result of the same width that begins where another one ends would count as one with it.)
    """
    count, stored = 0, dict[tuple[int, int], _StoredTile]()
    for record in records:
        if (record.engine, record.name) != ("pe_fetch_store", "store"):
            continue
        pe = record.cube, record.pe
        previous = stored.get(pe)
        if previous is None or not previous.continues(record):
            count += 1
            previous = None
        stored[pe] = _StoredTile.of(record, previous)
    return count


@dataclass(frozen=True)
class _StoredTile:
    """A tile of a result: its block, the start of its row of tiles, the width of the result."""

    row_address: int
    address: int
    rows: int
    row_bytes: int
    pitch_bytes: int

    @classmethod
    def of(cls, record: OpRecord, previous: "_StoredTile | None") -> "_StoredTile":
        rows, columns = record.shape
        itemsize = record.nbytes // (rows * columns)
        pitch = record.strides[0] if record.strides else columns
        is_beside = previous is not None and record.address == previous.end
        return cls(
            row_address=previous.row_address if previous and is_beside else record.address,
            address=record.address,
            rows=rows,
            row_bytes=columns * itemsize,
            pitch_bytes=pitch * itemsize,
        )

    @property
    def end(self) -> int:
        """The address behind the first row of the tile."""
        return self.address + self.row_bytes

    def continues(self, record: OpRecord) -> bool:
        """Whether `record` stores the tile behind this one in the same result."""
        other = _StoredTile.of(record, None)
        if other.pitch_bytes != self.pitch_bytes:
            return False
        if self.end < self.row_address + self.pitch_bytes:
            return other.address == self.end
        return other.address == self.row_address + self.rows * self.pitch_bytes
