"""Whole runs inside the process of the test."""

from sip_node.local_run import World, simulate

__all__ = ["World", "simulate"]
