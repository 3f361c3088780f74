"""What is certain about packets that leave a SIP."""

from sip_node.compiled.link_egress import LinkEgress

class Approach:
    """One last link before the UCIe ports."""

    def earliest_ps(self, base_ps: int) -> int:
        """No packet that has not reserved the link is at the IO NoC earlier."""

class Lookout:
    """The approaches of one SIP, and what is foreseen of its UCIe ports."""

    def watch(self, egress_to: list[LinkEgress | None]) -> None:
        """Foresee the crossings to each target with an egress; None for the others."""

    def bounds(self, base_ps: int) -> list[tuple[int, int]]:
        """(target, time) for all packets on their way to a last link."""

    def foresee(self, before_ps: int) -> int:
        """Let the packets that are at the IO NoC before `before_ps` enter their messages."""
