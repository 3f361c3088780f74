"""The trace of sends and receives: a word for every slot that a kernel has sent or received, with its address decoded."""

from collections.abc import Callable

from runtime.core.requests import QueuePair
from runtime.core.trace import Operand
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.wire.messages import RingAddress, SlotTransfer
from sip_node.chip.context import ChipContext
from sip_node.chip.pe.context import PeContext
from sip_node.chip.strided_block import nbytes_of


def decoded(address: int, addresses: AddressMap) -> RingAddress:
    """An address with what it names."""
    at = PhysAddr.decode(address, addresses)
    return RingAddress(address, at.resource, at.sip, at.cube, at.pe, at.offset)


class SlotTrace:
    """What one kernel on one PE sends and receives, told to `tell` in simulated time."""

    def __init__(
        self,
        chip: ChipContext,
        context: PeContext,
        kernel: str,
        tell: Callable[[SlotTransfer], None],
    ) -> None:
        self._addresses, self._context, self._kernel, self._tell = (
            chip.addresses,
            context,
            kernel,
            tell,
        )

    def sent(self, pair: QueuePair, block: Operand) -> None:
        """A block has left for the slot at its address."""
        self._transferred(
            "send", pair, pair.tx_base or 0, block.address, nbytes_of(block), block.dtype
        )

    def received(self, pair: QueuePair, address: int, nbytes: int, dtype: str) -> None:
        """The elements in the slot at `address` have been read."""
        self._transferred("recv", pair, pair.rx_base or 0, address, nbytes, dtype)

    def _transferred(
        self, operation: str, pair: QueuePair, base: int, address: int, nbytes: int, dtype: str
    ) -> None:
        slot = (address - base) // pair.slot_size
        self._tell(
            SlotTransfer(
                self._context.engine.now_ps,
                *self._context.coordinates,
                self._kernel,
                operation,
                pair.direction,
                pair.peer,
                nbytes,
                dtype,
                slot,
                decoded(address, self._addresses),
            )
        )
