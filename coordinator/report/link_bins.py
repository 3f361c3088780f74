"""Gives the loads of links one width of bins: every link of every SIP has sent bins of its own."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runtime.core.run_tables import LINKS, MOST_BINS

if TYPE_CHECKING:
    import numpy as np

    Rows = np.ndarray[Any, np.dtype[Any]]

_KEYS = ("link", "kind", "bin")


def shift_of(parts: Iterable["Rows"]) -> int:
    """The least shift of the begins of bins for which `MOST_BINS` suffice."""
    last = max((int(rows["bin"].max()) for rows in parts if len(rows)), default=0)
    return max(0, last.bit_length() - (MOST_BINS - 1).bit_length())


def with_bins(rows: "Rows", shift: int) -> "Rows":
    """The rows of a SIP with the numbers of bins of the width `LEAST_BIN_PS << shift`.

    The rows of a link are consecutive, in the order of their bins, and remain so.
    """
    import numpy as np

    if not len(rows):
        return rows
    numbers = rows["bin"] >> shift
    begins = np.ones(len(rows), bool)
    begins[1:] = (
        (numbers[1:] != numbers[:-1])
        | (rows["link"][1:] != rows["link"][:-1])
        | (rows["kind"][1:] != rows["kind"][:-1])
    )
    if begins.all():
        # As in most runs, whose SIPs have bins of one width.
        # As plain bytes: numpy copies rows with columns field by field.
        widened = rows.view(f"V{rows.itemsize}").copy().view(rows.dtype)
        widened["bin"] = numbers
        return widened
    first = begins.nonzero()[0]
    united = rows[first]
    united["bin"] = numbers[first]
    for column in LINKS.columns:
        if column.name not in _KEYS:
            united[column.name] = np.add.reduceat(rows[column.name], first)
    return united
