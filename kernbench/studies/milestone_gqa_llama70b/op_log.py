"""Counts of the operations of a run, from its op log."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from runtime.core.trace import Operand, OpRecord

_Block = tuple[int, int, int, int]
"""SIP, cube and PE, and the address in TCM at which a block begins."""


class OpLogSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of products, of messages between PEs, and of requests of kernels to memory."""

    gemm_count: int
    ipcq_send_count: int
    ipcq_recv_count: int
    dma_read_count: int
    dma_write_count: int


class OpLogCounts:
    """Counts an op log that arrives in parts.

    A product is counted if its result is a value in TCM from which the vector engine reads. The log
    has a record of every tile that is stored from an accumulator: the first tile of a result lies
    where an operation of the vector engine has the start of its operand, the others lie inside the
    operand.
    """

    def __init__(self) -> None:
        self._requests = Counter[str]()
        self._stores = Counter[tuple[_Block, _Block]]()
        self._operands, self._accumulators = set[_Block](), set[_Block]()

    def add(self, sip: int, records: Iterable[OpRecord]) -> None:
        """Count further records of a SIP."""
        for record in records:
            pe = sip, record.cube, record.pe
            match record.engine, record.name:
                case "pe_dma", name:
                    self._requests[name] += 1
                case "pe_gemm", _:
                    self._accumulators.add((*pe, record.address))
                case "pe_fetch_store", "store":
                    [source] = _addresses(record)
                    self._stores[(*pe, record.address), (*pe, source)] += 1
                case "pe_math", _:
                    self._operands.update((*pe, address) for address in _addresses(record))
                case _:
                    pass

    def summary(self, times: int = 1) -> OpLogSummary:
        """The counts of all records, of SIPs of which `times` do the same."""
        return OpLogSummary(
            gemm_count=times
            * sum(
                count
                for (target, source), count in self._stores.items()
                if target in self._operands and source in self._accumulators
            ),
            ipcq_send_count=times * self._requests["ipcq_send"],
            ipcq_recv_count=times * self._requests["ipcq_recv"],
            dma_read_count=times * (self._requests["load"] + self._requests["gather"]),
            dma_write_count=times * self._requests["store"],
        )


def _addresses(record: OpRecord) -> list[int]:
    """Where the operands of an operation begin."""
    return [operand.address for operand in record.inputs if isinstance(operand, Operand)]
