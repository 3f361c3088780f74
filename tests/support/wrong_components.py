"""Components with one mistake each, for `impl:` in a topology file: `--verify-data` finds it."""

from collections.abc import Callable, Sequence

from runtime.core.trace import Operand
from runtime.language.value import Array
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.memory.storage import HbmController
from sip_node.chip.pe.compute.gemm import PeGemm
from sip_node.chip.pe.compute.math import PeMath
from sip_node.chip.pe.dma import PeDma


class WrongMath(PeMath):
    """A vector engine with a wrong last byte in every result."""

    def run(
        self,
        name: str,
        inputs: Sequence[Operand | float],
        result: Operand,
        data: bytes,
        done: Callable[[], None],
        axis: int | None = None,
    ) -> int:
        wrong = data[:-1] + bytes([data[-1] ^ 0x40])
        return super().run(name, inputs, result, wrong, done, axis)


class WrongGemm(PeGemm):
    """A matrix engine that multiplies with twice its first operand."""

    def accumulated(self, sums: Array | None, a: Array, b: Array) -> Array:
        return super().accumulated(sums, a + a, b)


class DroppingDma(PeDma):
    """A DMA engine that loses the last byte of every block that it reads."""

    def landed(self, data: FabricTransfer, landed_ps: int) -> None:
        data.payload = bytes(data.payload[:-1]) + b"\0"
        super().landed(data, landed_ps)


class LeakyHbm(HbmController):
    """A memory that loses the first byte of every write."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        transfer = packet.transfer
        if transfer.kind is Kind.WRITE:
            transfer.payload = b"\0" + bytes(transfer.payload[1:])
        super().accept(packet, tail_ps)
