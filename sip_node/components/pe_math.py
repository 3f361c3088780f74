"""The compute side of a PE: fetch/store between TCM and registers, and the vector engine."""

from fractions import Fraction

from runtime.simtime import PS_PER_NS
from runtime.trace import OpRecord
from sip_node.components.server import Server
from sip_node.components.wiring import PeWiring


class PeFetchStore:
    """TCM <-> registers at its own bandwidth; it occupies TCM for the same bytes."""

    def __init__(self, wiring: PeWiring) -> None:
        self._tcm = wiring.tcm
        self.server = Server(f"{wiring.place}: pe_fetch_store", wiring.topology.pe.fetch_store.bw_gbs)

    def move(self, head_ps: int, nbytes: int) -> int:
        """Move `nbytes` from `head_ps` on; returns when the last one is there."""
        start_ps, tail_ps = self.server.reserve(head_ps, head_ps, nbytes)
        return self._tcm.reserve(start_ps, tail_ps, nbytes)[1]


class PeMath:
    """The vector engine: `lanes` elements a cycle after a pipeline fill. An operation is fetch, compute, store in turn."""

    def __init__(self, wiring: PeWiring, fetch_store: PeFetchStore) -> None:
        math = wiring.topology.pe.math
        self._wiring, self._fetch_store = wiring, fetch_store
        self._lanes, self._pipeline_cycles = math.lanes, math.pipeline_cycles
        self._cycle_ps = Fraction(PS_PER_NS) / Fraction(str(math.clock_ghz))
        self.free_ps = 0
        self.busy_ps = 0

    def compute_ps(self, numel: int) -> int:
        """Cycles = pipeline fill + ceil(elements / lanes), as time, rounded up to the picosecond."""
        cycles = self._pipeline_cycles + -(-numel // self._lanes)
        return -(-cycles * self._cycle_ps.numerator // self._cycle_ps.denominator)

    def run(self, name: str, fetched: int, numel: int, shape: tuple[int, ...], dtype: str, stored: int) -> int:
        """Reserve fetch, engine and store for one operation from now on; logs it and returns its end."""
        now_ps = self._wiring.engine.now_ps
        ready_ps = self._fetch_store.move(now_ps, fetched)
        start_ps = max(ready_ps, self.free_ps)
        self.free_ps = start_ps + self.compute_ps(numel)
        self.busy_ps += self.free_ps - start_ps
        end_ps = self._fetch_store.move(self.free_ps, stored)
        place = self._wiring.place
        self._wiring.record(
            OpRecord("pe_math", name, start_ps, end_ps, place.cube, place.pe, 0, stored, shape=shape, dtype=dtype)
        )
        return end_ps
