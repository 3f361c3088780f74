"""The posted sends of a PE: each waits until its receive is posted at the peer (rendezvous).

A message and its receive have one id, the `call`. A receive that is posted sends a notice with the
id to the PE of the sender; a send that is posted waits for that notice, and is eligible then:

    sender                                   receiver
    send posted                              receive posted
        |  <------------- READY ----------------  |
    eligible: begins when no other send is in flight
        |  -------------- slots --------------->  |
        |  <------------ credits ---------------  |

The receive of an eligible send empties the ring, so a send in flight waits for credits only while
slots are read, and never for another call of the peer. One message is in flight at a time: slots of
two messages never mix in a ring, and the PE needs scratch for one message.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from runtime.core.errors import InvariantError, TransferMismatchError
from runtime.core.requests import Transfer, elements_of
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.failure import ProgramRaised
from sip_node.chip.pe.context import PeContext


class _PostedSend(NamedTuple):
    """A send of the message `call`; `begin` starts it."""

    call: str
    transfer: Transfer
    begin: Callable[[], None]


class PostedSends:
    """The sends that are posted on one PE, and the notices of receives that have no send yet."""

    def __init__(self, context: PeContext) -> None:
        self._context = context
        self._waiting: dict[str, _PostedSend] = {}
        self._notices: dict[str, str] = {}
        self._eligible: deque[_PostedSend] = deque()
        self._in_flight = False

    def post(self, call: str, transfer: Transfer, begin: Callable[[], None]) -> None:
        """Post a send; `begin()` is called as soon as its receive is posted and no other send is in
        flight. For the event loop only.
        """
        send = _PostedSend(call, transfer, begin)
        notice = self._notices.pop(call, None)
        if notice is None:
            self._waiting[call] = send
        else:
            self._match(send, notice)

    def ready(self, packet: Packet) -> None:
        """A peer has posted a receive."""
        # The queues need not be installed here: a receive may be posted long before its send.
        call, _, part = packet.transfer.call.partition(": ")
        send = self._waiting.pop(call, None)
        if send is None:
            self._notices[call] = part
        else:
            self._match(send, part)

    def ended(self) -> None:
        """The last byte of the send in flight has left."""
        self._in_flight = False
        # In an event of its own: a kernel that ends must not start another one from its stack.
        self._context.engine.at(self._context.engine.now_ps, self._begin_next)

    def check_idle(self) -> None:
        """At the end of a run every receive had its send."""
        if self._notices:
            raise InvariantError(
                f"ipcq of {self._context.coordinates}",
                f"a receive is posted that has no send: {min(self._notices)}",
            )

    def _match(self, send: _PostedSend, part: str) -> None:
        transfer = send.transfer
        if elements_of(part) != transfer.elements:
            sip = self._context.coordinates.sip
            calls = [f"{send.call}: {each}" for each in (transfer.part, part)]
            raise ProgramRaised(sip, TransferMismatchError(sip, calls[0], transfer.peer, calls[1]))
        self._eligible.append(send)
        self._begin_next()

    def _begin_next(self) -> None:
        if self._eligible and not self._in_flight:
            self._in_flight = True
            self._eligible.popleft().begin()
