"""The passes that the vector engine makes over the elements of an operation.

A pass takes the elements vector by vector, and evaluates one or more functions on each vector. The
cycles of a function are a number of the topology file, `pe.math.cycles`.
"""

from typing import NamedTuple

from runtime.language.operations import COMPARISONS, REDUCTIONS


class Pass(NamedTuple):
    """One pass over the elements: `functions` of every vector, one after the other.

    A pass that `reduces` keeps its result in the lanes. After the last vector a tree combines the
    lanes, and the functions `after` apply to what the tree returns.
    """

    functions: tuple[str, ...]
    reduces: bool = False
    after: tuple[str, ...] = ()


_SOFTMAX = (
    # The safe softmax of M. Milakov and N. Gimelshein, Online normalizer calculation for softmax
    # (2018), algorithm 2: three reads of each element and one write. The exponential is evaluated
    # twice, so that no rounded exponential is stored in between.
    Pass(("max",), reduces=True),
    Pass(("exp", "sum"), reduces=True, after=("div",)),
    Pass(("exp", "mul")),
)

_FUNCTIONS = dict.fromkeys(COMPARISONS, "compare") | dict.fromkeys(
    ("bitwise_and", "bitwise_or", "bitwise_xor"), "bitwise"
)


def passes(name: str) -> tuple[Pass, ...]:
    """The passes of an operation, in their order.

    Every operation but `softmax` has one, of the function of its own name. The comparisons share
    the function `compare`, the bitwise operations `bitwise`.
    """
    if name == "softmax":
        return _SOFTMAX
    return (Pass((_FUNCTIONS.get(name, name),), reduces=name in REDUCTIONS),)
