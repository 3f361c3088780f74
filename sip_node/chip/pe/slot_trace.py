"""The trace of messages: one line for every slot that a kernel sends or receives, with its address.

On with `KERNBENCH_CCL_TRACE`; it changes no time and is no part of the digest.
"""

from collections.abc import Callable

from runtime.core.requests import QueuePair
from runtime.core.trace import Operand
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.wire.reports import RingAddress, SlotTransfer
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.queue_table import Slot
from sip_node.chip.strided_block import nbytes_of


def decoded(address: int, addresses: AddressMap) -> RingAddress:
    """A physical address with its fields: the memory, its coordinates, the offset."""
    fields = PhysAddr.decode(address, addresses)
    return RingAddress(
        address=address,
        resource=fields.resource,
        sip=fields.sip,
        cube=fields.cube,
        pe=fields.pe,
        offset=fields.offset,
    )


class SlotTrace:
    """Reports the slots of one kernel on one PE to `sink`, at the end of each transfer."""

    def __init__(
        self,
        addresses: AddressMap,
        context: PeContext,
        kernel: str,
        sink: Callable[[SlotTransfer], None],
    ) -> None:
        self._addresses, self._context = addresses, context
        self._kernel, self._sink = kernel, sink

    def sent(self, pair: QueuePair, block: Operand) -> None:
        """The last byte of a block has left TCM for the slot at its address."""
        slot = Slot(block.address, nbytes_of(block), block.dtype, "")
        self._report("send", pair, pair.tx_base, slot)

    def received(self, pair: QueuePair, slot: Slot) -> None:
        """A slot has been copied out of the ring."""
        self._report("recv", pair, pair.rx_base, slot)

    def _report(self, operation: str, pair: QueuePair, base: int | None, slot: Slot) -> None:
        assert base is not None, "a slot is in a ring"
        at = self._context.coordinates
        self._sink(
            SlotTransfer(
                time_ps=self._context.engine.now_ps,
                sip=at.sip,
                cube=at.cube,
                pe=at.pe,
                kernel=self._kernel,
                operation=operation,
                direction=pair.direction,
                peer=pair.peer,
                nbytes=slot.nbytes,
                dtype=slot.dtype,
                slot=(slot.address - base) // pair.slot_size,
                at=decoded(slot.address, self._addresses),
            )
        )
