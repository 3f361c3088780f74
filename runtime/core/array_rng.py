"""Streams of random arrays from explicit seeds, which give equal arrays in every process."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    # Not where it is imported: numpy loads its random numbers when they are first named, and they
    # take 2.5 MB of a process.
    ArrayStream = np.random.Generator
    """The type of a stream."""


def array_stream(seed: int) -> "ArrayStream":
    """A stream whose arrays depend on `seed`, a non-negative integer, alone."""
    return np.random.Generator(np.random.PCG64(seed))
