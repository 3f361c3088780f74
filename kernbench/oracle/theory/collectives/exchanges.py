"""The bound of an exchange of parts between all SIPs: the port that the most bytes pass.

A part that SIP s sends to SIP d takes the shortest path from s to d. A link from a SIP to the next
one, in one direction, is a port; so is the UCIe port between a column (or row) of cubes and the IO
chiplet, in one direction. A part is dealt in about equal shares, of at least one packet of 4 KiB
each, to the first PEs of the SIP, by which it leaves s and arrives at d. The bound is

    alpha + max over ports of bytes / B

with alpha of the nearest PE that moves bytes, over the fewest links. No run is faster: a port moves
no two bytes at once, and neither its first nor its last byte skips the rest of a path.

Of an exchange and its reverse a SIP begins the second when the first is complete for it: all bytes
for the SIP precede all that it returns, so the bounds of these parts add up.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kernbench.oracle.theory.alpha_beta import AlphaBeta
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile

SHARE_BYTES = 4096
"""The least share of a PE: one packet of the movers of a collective."""


class PartSizes(NamedTuple):
    """`rows[s][d]` rows of `row_elements` elements go from SIP s to SIP d."""

    rows: Sequence[Sequence[int]]
    row_elements: int
    itemsize: int

    @property
    def reversed(self) -> "PartSizes":
        """Every part on its way back."""
        return self._replace(rows=tuple(zip(*self.rows, strict=True)))

    def only_to(self, sip: int) -> "PartSizes":
        """The parts for one SIP."""
        return self._replace(
            rows=[[rows if to == sip else 0 for to, rows in enumerate(row)] for row in self.rows]
        )


class BusiestPort(NamedTuple):
    """A port by name, the bytes that pass it, and the least time of the exchange in ps."""

    port: str
    nbytes: int
    bound_ps: float


class ExchangeBound:
    """The bound for the SIPs of a topology file, a ring or an open grid."""

    def __init__(self, file: TopologyFile) -> None:
        self._file, self._grid, self._plan = file, SipGrid.of(file), FloorPlan(file)
        self._costs = KernelCosts(file, SHARE_BYTES)
        self._pes = file.cubes * file.pes_per_cube
        self._alphas_ps = dict[tuple[int, int], int]()

    def busiest(self, *exchanges: PartSizes) -> BusiestPort:
        """The busiest port of exchanges in sequence; `ValueError` if no part changes its SIP."""
        loads, hops, movers = Counter[str](), set[int](), 0
        for sizes in exchanges:
            for source, target, elements in self._moved(sizes):
                shares = shares_of(elements, sizes.itemsize, self._pes)
                self._add(loads, source, target, [each * sizes.itemsize for each in shares])
                hops.add(self._grid.distance(source, target))
                movers = max(movers, len(shares))
        if not loads:
            raise ValueError("no part changes its SIP")
        # The first of equal ports in the order of their names.
        port = min(loads, key=lambda name: (-loads[name], name))
        link = AlphaBeta(self._alpha_ps(min(hops), movers), self._file.number("ucie.bw_gbs"))
        return BusiestPort(port, loads[port], float(link.message_ps(loads[port])))

    def there_and_back_ps(self, sizes: PartSizes) -> float:
        """The bound of an exchange and its reverse; `ValueError` as for `busiest`."""
        least_ps = self.busiest(sizes, sizes.reversed).bound_ps
        for sip in range(len(sizes.rows)):
            here = sizes.only_to(sip)
            if any(row[sip] for source, row in enumerate(here.rows) if source != sip):
                both_ps = self.busiest(here).bound_ps + self.busiest(here.reversed).bound_ps
                least_ps = max(least_ps, both_ps)
        return least_ps

    def _moved(self, sizes: PartSizes) -> Iterator[tuple[int, int, int]]:
        """(source, target, elements) of the parts that change their SIP."""
        for source, parts in enumerate(sizes.rows):
            for target, rows in enumerate(parts):
                if rows and source != target:
                    yield source, target, rows * sizes.row_elements

    def _add(self, loads: Counter[str], source: int, target: int, shares: list[int]) -> None:
        # Channel load: the port with the most bytes bounds every schedule on these paths. W. Dally,
        # B. Towles, Principles and Practices of Interconnection Networks, 2004, chapter 3.
        for here, there in pairwise(self._grid.path(source, target)):
            loads[f"SIP {here} to SIP {there}"] += sum(shares)
        for pe, nbytes in enumerate(shares):
            column = self._column(pe // self._file.pes_per_cube)
            loads[f"SIP {source}, {column} to IO"] += nbytes
            loads[f"SIP {target}, IO to {column}"] += nbytes

    def _column(self, cube: int) -> str:
        """The cubes that share the way to the IO chiplet; its edge has a port for each of them."""
        row, column = divmod(cube, self._file["sip.cube_mesh.w"])
        in_columns = self._file["sip.io_chiplet.edge"] in {"N", "S"}
        return f"column {column}" if in_columns else f"row {row}"

    def _alpha_ps(self, hops: int, movers: int) -> int:
        return min(self._alpha_of_ps(hops, pe) for pe in range(movers))

    def _alpha_of_ps(self, hops: int, pe: int) -> int:
        # Routes take a millisecond each: once for each distance and PE.
        if (hops, pe) not in self._alphas_ps:
            each = divmod(pe, self._file.pes_per_cube)
            route = self._plan.between_pes(each, each, hops)
            self._alphas_ps[hops, pe] = self._costs.alpha_ps(route)
        return self._alphas_ps[hops, pe]


def shares_of(elements: int, itemsize: int, pes: int) -> list[int]:
    """The elements of each PE that moves a part, in the order of the PEs."""
    count = max(1, min(elements * itemsize // SHARE_BYTES, pes))
    share, more = divmod(elements, count)
    return [share + (index < more) for index in range(count)]
