"""Crossings for the interpreter, which foresees none: see approach.pyx."""

from collections.abc import Sequence
from typing import Any


def watch(fabric: object, egress_to: Sequence[object]) -> Any:
    """What is foreseen of the packets of a fabric, None for nothing.

    `egress_to` are the links to the next SIP, by target.
    """


def last_link(fabric: object, node: int) -> Any:
    """The last link of packets from a node to the UCIe ports, None where nothing is foreseen."""


def is_foreseen(packet: object) -> bool:  # noqa: ARG001
    """Whether the time of a packet at its UCIe port is known before it is there."""
    return False


def cross(lookout: None, egress: Any, packet: object, tail_ps: int) -> int:  # noqa: ARG001
    """Send a packet whose head is at the IO NoC now; returns the time when its tail has left."""
    return egress.cross(packet, tail_ps)
