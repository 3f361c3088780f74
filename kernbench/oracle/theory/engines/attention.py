"""Least times of the scores of an attention, by the engine that computes.

A score takes `depth` multiplications for q k^T and as many for the product with v. The vector
engine computes for each score the maximum, the difference, the exponential and the conversion.
"""

from fractions import Fraction
from typing import NamedTuple

from kernbench.oracle.theory.bandwidths import gemm_bound_ps
from kernbench.oracle.theory.engines.vector_engine import VectorEngine
from kernbench.oracle.theory.topology_file import TopologyFile

ITEM_BYTES = 2
"""An element is float16."""
FUNCTIONS = ("max", "fma", "exp", "cast")
"""Functions that the vector engine computes for each score."""


class ScoreTimes(NamedTuple):
    """The times of both engines, in picoseconds."""

    gemm_ps: Fraction
    vector_ps: Fraction


def score_times(file: TopologyFile, scores: int, depth: int) -> ScoreTimes:
    """The times of `scores` scores on one PE."""
    vector = VectorEngine(file)
    # Online softmax: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
    # Work that is done once for a row and a block of keys is left out: the time is a lower bound.
    cycles = Fraction(scores * vector.cycles(*FUNCTIONS), vector.lanes)
    return ScoreTimes(gemm_bound_ps(file, 2 * scores * depth), vector.engine_ps(cycles))
