"""The interface between the loop and the transports that carry frames between LPs."""

from typing import Protocol

from runtime.wire.frames import PeerContent


class Transport(Protocol):
    """Carries content between LPs: nothing is lost, repeated or reordered between two LPs.

    Between different pairs there is no order. A frame without messages may be replaced by a later
    frame that the peer receives. One may also come in addition, ahead of a frame: with what of its
    promises holds without its messages. One contract suite holds for every implementation.
    """

    def send(self, peer: int, content: PeerContent) -> bool:
        """Send `content` to LP `peer`, without waiting for it; returns whether that took a message.

        A promise takes none where both LPs share memory.
        """
        ...

    def poll(self) -> list[tuple[int, PeerContent]]:
        """The content received since the last poll, with the sending LP; does not wait."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when there is something to poll or to do, at the latest after `timeout_s`."""
        ...

    def close(self) -> None:
        """Release everything; closing again does nothing."""
        ...
