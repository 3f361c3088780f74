"""The grid of the SIPs, and the names of the ports by which they are joined."""

from runtime.model.schema.topology_schema import Topology

SWITCH = "switch"


class GridOfSips:
    """`columns` and `rows` of the SIPs, and whether the grid `wraps` round.

    Through a switch (`is_switched`) every SIP is a neighbour of every other, and has one port for
    all.
    """

    def __init__(self, topology: Topology) -> None:
        self.sips = topology.sips
        self.columns, self.rows = topology.sip_grid
        self.wraps = topology.system.sips.topology != "mesh_2d_no_wrap"
        self.is_switched = topology.system.sips.fabric == SWITCH

    def grid(self, sip: int) -> tuple[int, int]:
        """Column and row of a SIP; a ring is one row."""
        return sip % self.columns, sip // self.columns

    def beside(self, sip: int) -> tuple[int, ...]:
        """The SIPs to which `sip` has a link, in ascending order."""
        if self.is_switched:
            return tuple(other for other in range(self.sips) if other != sip)
        (column, row) = self.grid(sip)
        beside = {self._at(column + dx, row + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        # On a ring of two both directions lead to the same neighbour; a set keeps it once.
        return tuple(sorted(other for other in beside - {None, sip} if other is not None))

    def port(self, other: int) -> str:
        """The port of a SIP by which its packets leave for the neighbour `other`."""
        return f"io.ucie.{SWITCH}" if self.is_switched else f"io.ucie.sip{other}"

    def ports(self, sip: int) -> tuple[str, ...]:
        """The ports of a SIP to other SIPs."""
        return tuple(dict.fromkeys(self.port(other) for other in self.beside(sip)))

    def _at(self, column: int, row: int) -> int | None:
        if self.wraps:
            column, row = column % self.columns, row % self.rows
        inside = 0 <= column < self.columns and 0 <= row < self.rows
        return row * self.columns + column if inside else None
