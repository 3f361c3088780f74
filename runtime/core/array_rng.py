"""Streams of random arrays from explicit seeds, which give equal arrays in every process."""

import numpy as np

ArrayStream = np.random.Generator
"""The type of a stream."""


def array_stream(seed: int) -> ArrayStream:
    """A stream whose arrays depend on `seed`, a non-negative integer, alone."""
    return np.random.Generator(np.random.PCG64(seed))
