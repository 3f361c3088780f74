"""What an all-reduce takes by its closed form, from the numbers of the topology file alone.

**alpha** is what a message costs that has no bytes: issue of the command, start of the DMA, every overhead and wire of the way,
and the IPCQ that makes the slot known. **B** is the narrowest bandwidth of the way. A message of m bytes takes alpha + m/B: the
model cuts messages through, so bytes are paid once, at the narrowest place, however many SIPs forward them.

    ring         2(p-1) alpha + 2(p-1)/p n/B           reduce-scatter and all-gather (R. Thakur, R. Rabenseifner, W. Gropp,
                                                       "Optimization of Collective Communication Operations in MPICH", 2005)
    intercube    2 (W-1 + H-1)(alpha_c + n/B_c)        to the root cube along rows and column of the W x H cubes, and back
                 + a ring of each dimension of SIPs    where it is closed, else 2 (k-1)(alpha + n/B) for k SIPs in a row

These forms have no place for what a PE does with bytes it has; that is what a measurement has above them. `Parts` puts it in,
for the ring with queues in TCM. A message is at most a receive ring, so a large buffer goes round in blocks, each of which pays
every alpha again. In each step the last slot of a message is copied out of the ring when nothing else is left to do; what was
received is added before it is sent on; and a message that needs slots of the one before it waits for their credits. Before and
after, a block is loaded and stored.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from msgspec import Struct

from kernbench.studies.milestone_1h_ccl.networks import Layout, Network
from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.floor_plan import FloorPlan, pe_stem
from kernbench.theory.routes import Route
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.transfers import RouteTimes

ELEMENT_BYTES = 4
"""int32: every sum of it is exact."""
ARRIVAL_COPIES = 2
"""A slot in TCM that is copied to scratch passes the port of TCM out and in."""


@dataclass(frozen=True)
class Link:
    """Alpha and B of one way between two PEs."""

    alpha_ps: int
    gbs: Fraction

    def ps(self, nbytes: Fraction | int) -> Fraction:
        """One message of `nbytes`."""
        return self.alpha_ps + self.moving_ps(nbytes)

    def moving_ps(self, nbytes: Fraction | int) -> Fraction:
        """The bytes alone."""
        return Fraction(nbytes) * 1000 / self.gbs


@dataclass(frozen=True)
class Queue:
    """The receive ring between two ranks, and the packets in which a slot is written."""

    slots: int
    slot_bytes: int
    credit_bytes: int
    packet_bytes: int

    @property
    def ring_bytes(self) -> int:
        """The largest message."""
        return self.slots * self.slot_bytes


class Parts(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the time of the ring goes, in picoseconds: the two parts of the textbook form, then what it leaves out.

    `alpha_ps` is paid by every block, `copy_ps` is the last slot of every message, `add_ps` the additions, `credit_ps` waiting
    for credits, `memory_ps` loading and storing the blocks.
    """

    alpha_ps: float
    moving_ps: float
    copy_ps: float
    add_ps: float
    credit_ps: float
    memory_ps: float

    @property
    def total_ps(self) -> float:
        """All of it."""
        return (
            self.alpha_ps
            + self.moving_ps
            + self.copy_ps
            + self.add_ps
            + self.credit_ps
            + self.memory_ps
        )


def ring_alpha_beta_ps(
    ranks: int, alpha_ps: float | Fraction, gbs: float | Fraction, nbytes: int
) -> float:
    """2(p-1) alpha + 2(p-1)/p n/B, in picoseconds: every step of the ring sends n/p bytes."""
    return float(
        2 * (ranks - 1) * (Fraction(alpha_ps) + Fraction(nbytes, ranks) * 1000 / Fraction(gbs))
    )


class Theory:
    """The closed forms on one topology file, for SIPs joined as a network."""

    def __init__(self, topology_yaml: str, network: Network) -> None:
        self._file, self._form = (
            TopologyFile.of(topology_yaml),
            RouteTimes(TopologyFile.of(topology_yaml)),
        )
        self._plan, self._network = FloorPlan(self._file), network
        self.layout = Layout.of(topology_yaml, network.sips)

    def alpha_beta_ps(self, algorithm: str, nbytes: int) -> float:
        """The textbook form for `nbytes` a PE."""
        if algorithm == "ring":
            return float(
                self._ring_alphas_ps()
                + 2 * (self._network.sips - 1) * self.ring_link.moving_ps(self._part(nbytes))
            )
        return float(self._intercube_ps(nbytes))

    def least_ps(self, algorithm: str, nbytes: int) -> float:
        """What no run can be below: the ring moves messages whole; blocks of `intercube` may follow each other closely."""
        if algorithm == "ring":
            return self.alpha_beta_ps(algorithm, nbytes)
        return float(
            self._intercube_ps(0)
            + self._between_sips(0, 1).moving_ps(nbytes) / max(self._network.w, self._network.h)
        )

    @property
    def ring_link(self) -> Link:
        """Between the ranks of the ring that are farthest apart; ways of the ring that take the same link share its B."""
        link = self._between_sips(0, max(self.layout.remaining_hops))
        return Link(link.alpha_ps, link.gbs / self.layout.busiest)

    def parts(self, nbytes: int, queue: Queue) -> Parts:
        """What the kernel of the ring does with `nbytes` that go round through queues in TCM."""
        block = queue.ring_bytes * self._network.sips
        blocks = [self._block(min(block, nbytes - at), queue) for at in range(0, nbytes, block)]
        return Parts(*(float(sum(same)) for same in zip(*blocks, strict=True)))

    def _block(self, nbytes: int, queue: Queue) -> tuple[Fraction, ...]:
        """The fields of `Parts`, of one block."""
        ranks, part = self._network.sips, self._part(nbytes)
        alphas_ps, moving_ps = Fraction(self._ring_alphas_ps()), self.ring_link.moving_ps(part)
        copy_ps, add_ps = self._copy_ps(min(part, Fraction(queue.slot_bytes))), self._add_ps(part)
        # What a message is late where nothing is added to it, and where something is.
        late_ps = self._round_ps(part, queue) - (self.ring_link.alpha_ps + moving_ps + copy_ps)
        credits_ps = max(late_ps, Fraction(0)) * (ranks - 2) + max(
            late_ps - add_ps, Fraction(0)
        ) * (ranks - 1)
        memory_ps = self._memory_ps(nbytes) + ranks * self._memory_ps(part)
        steps = 2 * (ranks - 1)
        return (
            alphas_ps,
            steps * moving_ps,
            steps * copy_ps,
            (ranks - 1) * add_ps,
            credits_ps,
            memory_ps,
        )

    def _round_ps(self, part: Fraction, queue: Queue) -> Fraction:
        """How long after a message the next one can start: its first slot that is not free is the first one of this message."""
        slots = ceil(part / queue.slot_bytes)
        unused = queue.slots - slots
        if unused >= slots:
            return Fraction(0)
        link, slot = self.ring_link, Fraction(min(part, queue.slot_bytes))
        credit_ps = self._credit_alpha_ps() + link.moving_ps(queue.credit_bytes)
        held_ps = self._held_ps(queue) if slots > 1 else 0
        return (
            link.ps(slot)
            + held_ps
            + self._copy_ps(slot)
            + credit_ps
            - unused * link.moving_ps(slot)
        )

    def _held_ps(self, queue: Queue) -> Fraction:
        """How long a copy waits for the packet behind its slot: that one holds the port of TCM from its head to its tail."""
        prepared_ps = self._file.ps("pe.ipcq.overhead_ns") + self._file.ps("pe.dma.overhead_ns")
        return max(self.ring_link.moving_ps(queue.packet_bytes) - prepared_ps, Fraction(0))

    def _credit_alpha_ps(self) -> int:
        """A credit is on the way and handled; it needs no command and no DMA."""
        return self.ring_link.alpha_ps - self._issue_ps() - self._file.ps("pe.dma.overhead_ns")

    def _part(self, nbytes: int) -> Fraction:
        return Fraction(nbytes, self._network.sips)

    def _ring_alphas_ps(self) -> int:
        """The alphas of 2(p-1) steps: bytes that start at the worst place pass so many ways of the ring one after the other."""
        remaining_hops, steps = self.layout.remaining_hops, 2 * (self._network.sips - 1)
        alphas = [self._between_sips(0, count).alpha_ps for count in remaining_hops]
        return max(
            sum(alphas[(start + step) % len(alphas)] for step in range(steps))
            for start in range(len(alphas))
        )

    def _intercube_ps(self, nbytes: int) -> Fraction:
        w, h = self._file["sip.cube_mesh.w"], self._file["sip.cube_mesh.h"]
        total = Fraction(0)
        if w > 1:
            total += 2 * (w - 1) * self._between_cubes(0, 1).ps(nbytes)
        if h > 1:
            total += 2 * (h - 1) * self._between_cubes(0, w).ps(nbytes)
        link = self._between_sips(w * h - 1, 1)
        for length in (self._network.w, self._network.h):
            sent = (
                Fraction(nbytes)
                if self._network.topology == "mesh_2d_no_wrap"
                else Fraction(nbytes, length)
            )
            total += 2 * (length - 1) * link.ps(sent)
        return total

    def _between_sips(self, cube: int, remaining_hops: int) -> Link:
        stem = self._plan.cube.pe(0)
        return self._link(self._plan.between((cube, stem), (cube, stem), remaining_hops))

    def _between_cubes(self, cube: int, other: int) -> Link:
        stem = self._plan.cube.pe(0)
        return self._link(self._plan.between((cube, stem), (other, stem)))

    def _link(self, between: Route) -> Link:
        out, into = pe_stem(self._plan.cube.pe(0))
        way, form = out + between + into, self._form
        own_ps = (
            self._issue_ps()
            + self._file.ps("pe.dma.overhead_ns")
            + self._file.ps("pe.ipcq.overhead_ns")
        )
        return Link(own_ps + form.latency_ps(way), form.narrowest_gbs(way))

    def _issue_ps(self) -> int:
        return self._file.ps("pe.cpu.overhead_ns") + self._file.ps("pe.scheduler.overhead_ns")

    def _copy_ps(self, nbytes: Fraction) -> Fraction:
        """The last slot of a message, out of the receive ring."""
        port_ps = nbytes * 1000 / self._file.number("pe.tcm.bw_gbs")
        return self._file.ps("pe.dma.overhead_ns") + ARRIVAL_COPIES * port_ps

    def _add_ps(self, nbytes: Fraction) -> Fraction:
        """Two operands fetched, added, and the sum stored."""
        number = self._file.number
        cycles = number("pe.math.pipeline_cycles") + ceil(
            nbytes / ELEMENT_BYTES / number("pe.math.lanes")
        )
        ports_ps = 3 * nbytes * 1000 / number("pe.fetch_store.bw_gbs")
        return self._issue_ps() + ports_ps + cycles * 1000 / number("pe.math.clock_ghz")

    def _memory_ps(self, nbytes: Fraction | int) -> Fraction:
        """One load or store of the PE's own slice: translated, over the crossbar and back."""
        own_ps = (
            self._issue_ps()
            + self._file.ps("pe.mmu.overhead_ns")
            + self._file.ps("pe.dma.overhead_ns")
            + 2 * self._file.ps("xbar.overhead_ns")
        )
        return own_ps + Fraction(nbytes) * 1000 / slice_gbs(self._file)
