"""The passes that the vector engine makes over the elements of an operation.

A pass takes the elements vector by vector, and evaluates one or more functions on each vector. The
cycles of a function are a number of the topology file, `pe.math.cycles`.
"""

from functools import cache
from typing import NamedTuple

from runtime.language.functions import COMPARISONS, ELEMENTWISE, REDUCTIONS, SCANS


class Pass(NamedTuple):
    """One pass over the elements: `functions` of every vector, one after the other.

    A pass that `reduces` keeps its result in the lanes. After the last vector a tree combines the
    lanes, and the functions `after` apply to what the tree returns. A pass that `scans` sends every
    vector through as many levels as the tree has: level i adds, to each lane, the lane 2^i before
    it (W. D. Hillis and G. L. Steele, Data parallel algorithms, 1986). Its function then adds what
    the vector before has left.
    """

    functions: tuple[str, ...]
    reduces: bool = False
    after: tuple[str, ...] = ()
    scans: bool = False


_SOFTMAX = (
    # The safe softmax of M. Milakov and N. Gimelshein, Online normalizer calculation for softmax
    # (2018), algorithm 2: three reads of each element and one write. The exponential is evaluated
    # twice, so that no rounded exponential is stored in between.
    Pass(("max",), reduces=True),
    Pass(("exp", "sum"), reduces=True, after=("div",)),
    Pass(("exp", "mul")),
)


_COSTS = {"bitcast": "cast"}
"""Operations that take the cycles of another one."""


@cache
def passes(name: str) -> tuple[Pass, ...]:
    """The passes of an operation, in their order.

    Every operation but `softmax` has one, of one function. The comparisons share the function
    `compare`, the bitwise operations `bitwise`; `bitcast` passes the datapath of `cast`.
    """
    if name == "softmax":
        return _SOFTMAX
    function = ELEMENTWISE.get(name) or COMPARISONS.get(name)
    cost = _COSTS.get(name, name) if function is None else function.cost
    return (Pass((cost,), reduces=name in REDUCTIONS, scans=name in SCANS),)
