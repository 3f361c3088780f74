"""Times of loads that compete for a slice or a link: the busiest server, and its bounds.

Each of k PEs loads n bytes. A server of bandwidth B that all of them pass is busy for k n / B. In
the steady state, where latencies overlap with the bytes of others, this is the time per n bytes if
the server never idles. It cannot be less. It is more where packets for a second, slower server wait
in the queue of the first one and hold back those behind them (head-of-line blocking). Without any
overlap of the two servers each packet takes as long as at the slower server on its route: the upper
bound.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kernbench.oracle.theory.bandwidths import own_read_gbs, slice_gbs
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import MESH_GBS, PE_GBS, TCM_GBS, UCIE_GBS, XBAR_GBS
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile


@dataclass(frozen=True)
class TimeBounds:
    """A time is at least `least_ps` and at most `most_ps`; equal where the formula is exact.

    Both hold but for `spread_ps`.
    """

    least_ps: int
    most_ps: int
    spread_ps: int = 0


class Contention:
    """The loads of one topology file, of `nbytes` by each PE."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self._slice_gbs = min(slice_gbs(file), file.number(XBAR_GBS))
        self._port_gbs = min(file.number(key) for key in (MESH_GBS, PE_GBS, TCM_GBS))

    def own_slices(self, nbytes: int) -> TimeBounds:
        """Any number of PEs, each from its own slice: no server is common to two of them."""
        time_ps = transfer_ps(nbytes, own_read_gbs(self._file))
        return TimeBounds(time_ps, time_ps)

    def one_slice(self, pes: int, nbytes: int) -> TimeBounds:
        """PEs of one cube from one slice of it."""
        # Links that are narrower than the slice serve the PEs side by side, at best.
        narrowest_gbs = min(self._slice_gbs, self._port_gbs)
        return _bounds(pes * nbytes, (self._slice_gbs,), narrowest_gbs)

    def one_link(self, pes: int, nbytes: int) -> TimeBounds:
        """PEs of one cube, each from another slice of the next cube, over their UCIe link.

        The link is busy for k n / B more. Which PE gets the last packet may differ with n, and so
        may the time from the link to that PE.
        """
        link_gbs = self._file.number(UCIE_GBS)
        narrowest_gbs = min(link_gbs, self._port_gbs, self._slice_gbs)
        bounds = _bounds(pes * nbytes, (link_gbs,), narrowest_gbs)
        times, plan = RouteTimes(self._file), FloorPlan(self._file)
        latencies_ps = [times.latency_ps(plan.between_pes((1, 0), (0, pe))) for pe in range(pes)]
        spread_ps = max(latencies_ps) - min(latencies_ps)
        return TimeBounds(bounds.least_ps, bounds.most_ps, spread_ps)

    def hot_slice(self, cube: int, nbytes: int) -> TimeBounds:
        """All PEs of the SIP from one slice in `cube`."""
        file, link_gbs = self._file, self._file.number(UCIE_GBS)
        here, elsewhere = file.pes_per_cube, (file.cubes - 1) * file.pes_per_cube
        # Two bounds, the larger one counts: the slice serves all PEs, and each UCIe port of its
        # cube all PEs behind it.
        slice_ps = transfer_ps((here + elsewhere) * nbytes, self._slice_gbs)
        link_ps = [
            transfer_ps(cubes * here * nbytes, link_gbs) for cubes in self._behind_links(cube)
        ]
        narrowest_gbs = min(self._slice_gbs, self._port_gbs)
        slowest_ps = transfer_ps(here * nbytes, narrowest_gbs) + transfer_ps(
            elsewhere * nbytes, min(narrowest_gbs, link_gbs)
        )
        # The PEs take turns packet by packet: the last turn of all may be that of another PE.
        turn_ps = transfer_ps(file["packet_bytes"], self._slice_gbs)
        return TimeBounds(max(slice_ps, *link_ps), slowest_ps, turn_ps)

    def _behind_links(self, cube: int) -> Iterable[int]:
        """The cubes that each UCIe link of a cube leads to, with columns before rows."""
        width, height = self._file["sip.cube_mesh.w"], self._file["sip.cube_mesh.h"]
        row, column = divmod(cube, width)
        # Dimension order: data for other columns leaves the cube to the east or west, and only data
        # for its own column to the north or south.
        return column * height, (width - 1 - column) * height, row, height - 1 - row


def _bounds(nbytes: int, shared_gbs: Iterable[Fraction], narrowest_gbs: Fraction) -> TimeBounds:
    # Above the least time: head-of-line blocking, as in M. Karol, M. Hluchyj, S. Morgan, "Input
    # versus output queueing on a space-division packet switch", IEEE Trans. Comm. 35(12), 1987.
    least_ps = max(transfer_ps(nbytes, gbs) for gbs in shared_gbs)
    return TimeBounds(least_ps, max(least_ps, transfer_ps(nbytes, narrowest_gbs)))
