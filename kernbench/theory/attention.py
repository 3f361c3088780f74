"""Least times of the scores of an attention, by the engine that computes.

A score takes `depth` multiplications for q k^T and as many for the product with v. The vector
engine computes for each score the maximum, the difference, the exponential and the conversion.
"""

from fractions import Fraction
from typing import NamedTuple

from kernbench.theory.bandwidths import peak_macs_per_cycle
from kernbench.theory.roofline import compute_bound_ps, cycles_ps
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.vector_engine import VectorEngine

ITEM_BYTES = 2
"""An element is float16."""
FUNCTIONS = ("max", "fma", "exp", "cast")
"""What the vector engine computes for each score."""


class ScoreTimes(NamedTuple):
    """The times of both engines, in picoseconds."""

    gemm_ps: Fraction
    vector_ps: Fraction


def score_times(file: TopologyFile, scores: int, depth: int) -> ScoreTimes:
    """The times of `scores` scores on one PE."""
    vector = VectorEngine(file)
    clock_ghz = file.number("pe.gemm.clock_ghz")
    cycles = Fraction(scores * vector.cycles(*FUNCTIONS), vector.lanes)
    return ScoreTimes(
        compute_bound_ps(2 * scores * depth, peak_macs_per_cycle(file), clock_ghz),
        cycles_ps(cycles, file.number("pe.math.clock_ghz")),
    )
