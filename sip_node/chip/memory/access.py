"""An access to a memory, and what serves it."""

from collections.abc import Callable
from typing import Protocol

from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.records.packet_train import PacketTrain
from sip_node.kernel.component import Component

MessageKey = tuple[int, int, int]
"""Source SIP, source node and tag of a message."""


class Access:
    """The bytes of one packet: `nbytes` at `offset`, or of `rows` from packed byte `begin` on.

    It arrived at `arrived_ps`; its last byte arrives at `tail_ps`. In a run with records `train`
    are the packets of its transfer; it was submitted at `submitted_ps`.
    """

    def __init__(
        self,
        message: MessageKey,
        offset: int,
        nbytes: int,
        arrived_ps: int,
        tail_ps: int,
        writes: bool,
        begun: Callable[[int, int, int], None] | None = None,
        rows: StridedBlock | None = None,
        begin: int = 0,
        train: PacketTrain | None = None,
    ) -> None:
        self.message, self.offset, self.nbytes = message, offset, nbytes
        self.arrived_ps, self.tail_ps, self.writes = arrived_ps, tail_ps, writes
        self._served, self.rows, self.begin, self.train = begun, rows, begin, train
        self.submitted_ps = 0

    def begun(self, first_ps: int, start_ps: int, end_ps: int) -> None:
        """The service begins: on the first channel at `first_ps`, on the last one at `start_ps`.

        The last byte is served at `end_ps`.
        """
        if self._served is not None:
            self._served(first_ps, start_ps, end_ps)


class Service(Protocol):
    """Serves the packets of a memory, in an order and at times of its own."""

    def submit(self, access: Access) -> None:
        """Take an access whose head has arrived."""
        ...


class AccessService(Component):
    """A service of a memory with its own events, of which there were `turns`."""

    turns: int

    def submit(self, access: Access) -> None:
        """Take an access whose head has arrived."""
        raise NotImplementedError(type(self).__name__)


class ForeignService(AccessService):
    """A service of any other class."""

    def __init__(self, service: Service) -> None:
        self._service, self.turns = service, 0

    def submit(self, access: Access) -> None:
        """Pass an access on."""
        self._service.submit(access)


def service_of(service: Service) -> AccessService:
    """The same service, with a method that is called without Python where it is compiled."""
    return service if isinstance(service, AccessService) else ForeignService(service)
