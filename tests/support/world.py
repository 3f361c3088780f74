"""Whole runs inside the test's own process."""

from sip_node.local_run import World, simulate

__all__ = ["World", "simulate"]
