"""The sends of a running kernel: a message leaves slot by slot, each with a credit."""

from runtime.core.trace import Operand
from runtime.language.value import Value
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.slot_trace import SlotTrace
from sip_node.chip.strided_block import is_packed, nbytes_of, part_of
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_queues import KernelQueues
from sip_node.programs.kernel_wait import KernelWait


class Sends:
    """Sends the values of one kernel."""

    def __init__(
        self,
        issuer: CommandIssuer,
        wait: KernelWait,
        dma: PeDma,
        queues: KernelQueues,
        faults: KernelFaults,
        trace: SlotTrace | None,
    ) -> None:
        self._issuer, self._wait, self._dma = issuer, wait, dma
        self._queues, self._faults, self._trace = queues, faults, trace

    def send(self, direction: str, value: Value) -> None:
        """For every slot: reserve it at the peer, sleep while there is no credit, write it."""
        queue, block, data = self._queues.outgoing(direction), value.operand, value.tobytes()
        pair = queue.pair
        if value.nbytes > pair.slot_size and not is_packed(block):
            raise self._faults.error(
                f"send to {direction} of a view with gaps, {value.nbytes:,} bytes: it must fit "
                f"a slot of {pair.slot_size:,} bytes; a copy made with tl.cat has no gaps"
            )
        for start in range(0, value.nbytes, pair.slot_size):
            source = part_of(block, start, min(pair.slot_size, value.nbytes - start))
            # For every slot anew: a collective may have started on these queues in the meantime.
            self._wait.begin(self._wait.on_peer("send", direction))
            address = self._issuer.issue(queue.acquire)
            self._wait.end()
            slot = Operand(address, source.shape, source.dtype)
            content = data[start : start + nbytes_of(source)]
            self._issuer.wait(
                self._dma.push, source, slot, content, pair.packet_bytes, self._faults.call
            )
            if self._trace is not None:
                self._trace.sent(pair, slot)
