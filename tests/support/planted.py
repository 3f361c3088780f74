"""Transports of real LPs with a defect: what they should never do."""

from runtime.wire.frames import PeerContent
from sip_node.pdes.transport_zmq import ZmqTransport

NUMBER = 2
"""The content from LP 1 that is affected."""


class LosingTransport(ZmqTransport):
    """Does not send one content of LP 1."""

    def send(self, peer: int, content: PeerContent) -> bool:
        if self._lp == 1 and self._sent[peer] == NUMBER:
            self._sent[peer] += 1
            return True
        return super().send(peer, content)


class DoublingTransport(ZmqTransport):
    """Sends one content of LP 1 twice."""

    def send(self, peer: int, content: PeerContent) -> bool:
        super().send(peer, content)
        if self._lp == 1 and self._sent[peer] == NUMBER + 1:
            self._sent[peer] -= 1
            super().send(peer, content)
        return True


TRANSPORTS = {"real": ZmqTransport, "loses": LosingTransport, "doubles": DoublingTransport}
"""The transport of a real LP by its behaviour."""
