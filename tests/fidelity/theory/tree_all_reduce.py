"""Closed form of the all-reduces that combine cubes, or PEs, over a tree below a ring of SIPs.

Every position of the tree has n bytes. Pieces go up the tree, round the ring of p roots and down
the tree at the same time, in messages of m bytes. With k children of a position, in units of n:

    resource                   root                     other positions
    port of the TCM            2 + 2k + 4(p-1)/p        2 + 2k + 2
    link of the PE, out or in  k + 2(p-1)/p             k + 1
    fetch port of the engine   k + 1 + (p-1)/p          k + 1, 0 without children
    additions                  k + (p-1)/p              k
    link to the next SIP       2(p-1)/p                 -
    link to the next cube      -                        1
    HBM slice                  2                        2

At the port of the TCM a byte passes that is loaded (1), received from a child or sent to it (2k),
received from the parent or sent to it (2) or round the ring (4(p-1)/p), and stored (1). Before
the first byte passes the root, its message has come up from the farthest position, and behind the
last byte a message goes down to it; the steps of the ring are messages without bytes, as in
`ring_all_reduce`:

    T = 2(p-1) alpha + sum over the links of the longest path, up and down, of (alpha + m/B)
        + max over all resources of their bytes / their bandwidth

Only the last term grows with n. No addition is part of the first two, although a message is
combined at every position: the form is less than any run.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.collectives.collective_forms import MESSAGE_BYTES
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.routes import PE_GBS, TCM_GBS, UCIE_GBS
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile

Position = tuple[int, int]
"""Cube and PE."""


class Bound(NamedTuple):
    """A resource, and the least time in which it serves all of its bytes."""

    resource: str
    time_ps: Fraction


class TreeAllReduceTimes:
    """The form on a topology file, with the first `pes` PEs of every cube and the root in the last
    cube; elements have `item_bytes`, packets of messages `packet_bytes`.
    """

    formula = "2(p-1) alpha + sum over the path (alpha + m/B) + max(TCM, links, adds, HBM)"

    def __init__(
        self, file: TopologyFile, pes: int, packet_bytes: int, item_bytes: int = 4
    ) -> None:
        self._file, self._item_bytes = file, item_bytes
        self._costs, self._plan = KernelCosts(file, packet_bytes), FloorPlan(file)
        self._positions = [(cube, pe) for cube in range(file.cubes) for pe in range(pes)]
        self._children = dict.fromkeys(self._positions, 0)
        for each in self._positions:
            if parent := self._parent(each):
                self._children[parent] += 1

    def form_ps(self, sips: int, nbytes: int) -> float:
        """The form for `nbytes` at every position, in picoseconds."""
        ring_ps = 2 * (sips - 1) * self._costs.alpha_ps(self._costs.to_sip())
        path_ps = self.path_ps(min(MESSAGE_BYTES, nbytes))
        return float(ring_ps + path_ps + self.busiest(sips, nbytes).time_ps)

    def path_ps(self, message_bytes: int) -> Fraction:
        """A message from the farthest position up to the root, and one down to it."""
        return max(self._way_ps(each, message_bytes) for each in self._positions)

    def busiest(self, sips: int, nbytes: int) -> Bound:
        """The resource that takes longest."""
        return max(self._bounds(sips, nbytes), key=lambda bound: bound.time_ps)

    def _bounds(self, sips: int, nbytes: int) -> Iterator[Bound]:
        number, around = self._file.number, Fraction(2 * (sips - 1), sips)
        for position, children in self._children.items():
            is_root = self._parent(position) is None
            # What passes in each direction of the link to a parent, or of those round the ring.
            above = around if is_root else Fraction(1)
            added = children + (above / 2 if is_root else Fraction(0))
            fetched = added + 1 if added else 0
            # The port is shared by both directions of every stream; a link is full duplex, so it is
            # charged with one direction only.
            yield Bound(
                "port of the TCM",
                bytes_ps((2 + 2 * children + 2 * above) * nbytes, number(TCM_GBS)),
            )
            yield Bound("link of the PE", bytes_ps((children + above) * nbytes, number(PE_GBS)))
            fetch_gbs = number("pe.fetch_store.bw_gbs")
            yield Bound("fetch port of the vector engine", bytes_ps(fetched * nbytes, fetch_gbs))
            yield Bound("vector engine", self._added_ps(added * nbytes))
        yield Bound("HBM slice", bytes_ps(2 * nbytes, slice_gbs(self._file)))
        cubes = Fraction(nbytes if self._file.cubes > 1 else 0)
        yield Bound("link between cubes", bytes_ps(cubes, number(UCIE_GBS)))
        yield Bound("link between SIPs", bytes_ps(around * nbytes, number(UCIE_GBS)))

    def _added_ps(self, nbytes: Fraction) -> Fraction:
        vector = self._costs.vector
        # A lane adds one element of up to four bytes in a cycle.
        vectors = nbytes / self._item_bytes / vector.lanes
        cycles = vector.cycles("add") * vectors
        return vector.engine_ps(cycles)

    def _way_ps(self, position: Position, message_bytes: int) -> Fraction:
        time_ps, here = Fraction(0), position
        while above := self._parent(here):
            for ends in ((here, above), (above, here)):
                link = self._costs.alpha_beta(self._plan.between_pes(*ends))
                time_ps += link.message_ps(message_bytes)
            here = above
        return time_ps

    def _parent(self, position: Position) -> Position | None:
        """PEs form a binary tree; rows of cubes lead to the last column, which leads to its end."""
        cube, pe = position
        if pe:
            return cube, (pe - 1) // 2
        columns = self._file["sip.cube_mesh.w"]
        if (cube + 1) % columns:
            return cube + 1, 0
        return (cube + columns, 0) if cube + columns < self._file.cubes else None
