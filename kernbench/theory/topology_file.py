"""The import path of before of `TopologyFile`, with which programs vary a topology file."""

from kernbench.oracle.theory.topology_file import TopologyFile

__all__ = ["TopologyFile"]
