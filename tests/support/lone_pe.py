"""The engines of one PE without a kernel."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import Operand, OpRecord
from runtime.model.topology import parse_topology
from runtime.wire.codec import decode_records
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.completion import Completion
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.pdes.engine import Engine
from tests.support.topologies import variant_text


class LonePe:
    """PE 0 of a chip with two PEs.

    `hbm` is a block in the slice of PE `pe`, `tcm` a block in its own TCM, both of i8.
    """

    def __init__(
        self,
        channels: int,
        *,
        outstanding: int = 16,
        data: bool = True,
        recorder: RunRecorder | None = None,
    ) -> None:
        text = variant_text(
            sip__cube_mesh={"w": 1, "h": 1},
            cube__pe_layout__pe_per_corner=1,
            cube__pe_layout__corners=["NW", "NE"],
            pe__dma__channels=channels,
            pe__dma__outstanding=outstanding,
        )
        topology = parse_topology(text, "topology.yaml", 1)
        self.engine, self.records = Engine(), list[OpRecord]()
        self.log = OpLog(self._keep, recorder=recorder)
        plan = chip_spec(topology, data=data)
        self.addresses = plan.addresses
        self.chip = Chip(plan, 0, self.engine, self.log)
        self.pe = self.chip.pe(PeCoordinates(0, 0, 0))
        self.dma = self.pe.dma

    def _keep(self, records: bytes) -> None:
        self.records.extend(decode_records(records, "the log"))

    def hbm(self, offset: int, *shape: int, pe: int = 0, strides: tuple[int, ...] = ()) -> Operand:
        return Operand(self.addresses.pe_hbm_addr(0, 0, pe, offset), shape, "i8", strides)

    def tcm(self, offset: int, *shape: int, strides: tuple[int, ...] = ()) -> Operand:
        return Operand(self.addresses.pe_tcm_addr(0, 0, 0, offset), shape, "i8", strides)

    def read(self, offset: int, nbytes: int, pe: int = 0) -> Completion[bytes]:
        return self.dma.read(self.hbm(offset, nbytes, pe=pe), self.tcm(0, nbytes))

    def run(self) -> list[OpRecord]:
        """The records, in the order of completion."""
        self.engine.run_before(NEVER_PS)
        self.log.flush()
        return self.records
