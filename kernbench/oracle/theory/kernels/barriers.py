"""Closed form of the barrier of a launch on an idle chip whose last PE comes behind all others.

    PE --> M_CPU of its cube --> M_CPU of the first cube --> M_CPUs --> PEs      control packets

An M_CPU sends its signals one behind the other on its link: first those to the other cubes, then
those to its own PEs.
"""

from collections.abc import Sequence

from kernbench.oracle.theory.kernels.launches import LaunchRoutes, PeOfSip
from kernbench.oracle.theory.paths.routes import M_CPU_GBS
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile


class BarrierTimes(LaunchRoutes):
    """The times of barriers of launches on `pes`, which are sorted."""

    def __init__(self, file: TopologyFile, pes: Sequence[PeOfSip]) -> None:
        super().__init__(file)
        self._cubes = dict[int, list[int]]()
        for cube, pe in pes:
            self._cubes.setdefault(cube, []).append(pe)
        self._first = min(self._cubes)
        self._signal_ps = transfer_ps(file["control_bytes"], file.number(M_CPU_GBS))

    def releases_ps(self, last: PeOfSip) -> dict[PeOfSip, int]:
        """Time from the call of the last PE to the end of the barrier on each PE."""
        control_ps = self.times.control_ps
        complete_ps = self.times.commands.issue_ps + control_ps(self.collect(last[1]))
        if last[0] != self._first:
            complete_ps += control_ps(self.between_m_cpus(last[0], self._first))
        found: dict[PeOfSip, int] = {}
        sent_ps = complete_ps
        for cube in [each for each in self._cubes if each != self._first]:
            found |= self._cube_ps(
                cube, sent_ps + control_ps(self.between_m_cpus(self._first, cube))
            )
            sent_ps += self._signal_ps
        return found | self._cube_ps(self._first, sent_ps)

    def _cube_ps(self, cube: int, begin_ps: int) -> dict[PeOfSip, int]:
        """The releases of the PEs of a cube, whose M_CPU sends the first one at `begin_ps`."""
        return {
            (cube, pe): begin_ps + place * self._signal_ps + self.times.control_ps(self.spread(pe))
            for place, pe in enumerate(self._cubes[cube])
        }
