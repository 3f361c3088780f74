"""The DMA requests of the oracle on the chip of the model, without kernels."""

from collections.abc import Sequence

from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import Operand, OpRecord
from runtime.model.topology import parse_topology
from runtime.wire.codec import decode_records
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.oracle.machine import OracleRequest, OracleTimes


class ChipTransfers:
    """A chip of one SIP with the keys of a topology file in YAML, whose DMAs have requests."""

    def __init__(self, text: str, requests: Sequence[tuple[int, OracleRequest]]) -> None:
        self._engine, self._records = Engine(), list[OpRecord]()
        self._log = OpLog(self._keep)
        spec = chip_spec(parse_topology(text, "topology.yaml", 1), data=False)
        self._addresses = spec.addresses
        self._chip = Chip(spec, 0, self._engine, self._log)
        self._completed = list[int]()
        for number, (time_ps, request) in enumerate(requests):
            self._engine.at(time_ps, self._submit, number, request)

    def times(self) -> list[OracleTimes]:
        """The times of all requests, in their order."""
        self._engine.run_before(NEVER_PS)
        self._log.flush()
        # A record is appended in the event in which its request completes.
        records = dict(zip(self._completed, self._records, strict=True))
        in_order = (records[number] for number in range(len(records)))
        return [OracleTimes(record.start_ps, record.end_ps) for record in in_order]

    def _keep(self, records: bytes) -> None:
        self._records.extend(decode_records(records, "the log"))

    def _submit(self, number: int, request: OracleRequest) -> None:
        _, cube, pe = request.pe
        near = Operand(self._addresses.pe_tcm_addr(0, cube, pe, 0), (request.nbytes,), "i8")
        assert not request.pitch or request.nbytes % request.row_bytes == 0, "whole rows"
        rows, strides = request.nbytes // request.row_bytes, (request.pitch, 1)
        block = ((rows, request.row_bytes), "i8", strides) if rows else ((request.nbytes,), "i8")
        far = Operand(self._address(request), *block)
        dma = self._chip.pe(PeCoordinates(0, cube, pe)).dma
        done = dma.read(far, near) if request.loads else dma.write(near, far, b"")
        done.then(lambda _: self._completed.append(number))

    def _address(self, request: OracleRequest) -> int:
        kind, cube, *pe = request.memory
        if kind == "sram":
            return self._addresses.cube_sram_addr(0, cube, request.offset)
        return self._addresses.pe_hbm_addr(0, cube, pe[0], request.offset)
