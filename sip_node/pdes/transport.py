"""What the loop needs from whatever carries frames between LPs."""

from typing import Protocol

from runtime.wire.frames import PeerContent


class Transport(Protocol):
    """Carries content between LPs: nothing is lost, repeated or reordered between two LPs.

    Between different pairs there is no order. One contract suite holds for every implementation.
    """

    def send(self, peer: int, content: PeerContent) -> None:
        """Hand `content` over for LP `peer`; does not wait for it."""
        ...

    def poll(self) -> list[tuple[int, PeerContent]]:
        """What has come since the last poll, with the LP that sent it; does not wait."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when `poll` may have something, when something else needs attention, or after
        `timeout_s`.
        """
        ...

    def close(self) -> None:
        """Release everything; closing again does nothing."""
        ...
