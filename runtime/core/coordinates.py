"""Coordinates of processing elements: the triple `(sip, cube, pe)`. There is no flat PE index."""

from typing import NamedTuple


class PeCoordinates(NamedTuple):
    """The coordinates of a processing element."""

    sip: int
    cube: int
    pe: int

    def __str__(self) -> str:
        return f"sip {self.sip} cube {self.cube} pe {self.pe}"
