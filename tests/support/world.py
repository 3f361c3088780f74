"""Whole runs inside the process of the test."""

from kernbench.simulation import Simulation, simulate

__all__ = ["Simulation", "simulate"]
