"""Closed forms of an all-reduce, from the topology file alone.

**alpha** is the time of a message without bytes: issue of the command, start of the DMA, all
overheads and wires of the path, and the IPCQ that announces the slot. **B** is the least bandwidth
on the path. A message of m bytes takes alpha + m/B: forwarding is cut-through, so bytes are paid
once, at the bottleneck, independently of the number of SIPs that forward them.

    ring       2(p-1) alpha + 2(p-1)/p n/B      reduce-scatter and all-gather
    intercube  2(W-1 + H-1)(alpha_c + n/B_c)    to the root cube along the rows and column of the
                                                W x H cubes, and back
               + for each dimension of SIPs: a ring where it is closed,
                 else 2(k-1)(alpha + n/B) for k SIPs in a row

The ring is that of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication
Operations in MPICH", IJHPCA 19(1), 2005.

These forms do not contain the work of a PE on bytes that have arrived: a measurement exceeds them
by that work. `RingTimeParts` adds it, for the ring with queues in TCM:

- A message is at most a receive ring, so a large buffer is sent in blocks. Each block pays every
  alpha again, and is loaded before and stored after its steps.
- In each step the last slot of a message is copied out of the ring when all other work of the step
  is complete.
- In the reduce-scatter a part is added to the local one before it is sent on.
- A message that needs slots of the previous one waits for their credits.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from msgspec import Struct

from kernbench.studies.milestone_1h_ccl.networks import RingPaths, SipNetwork
from kernbench.validate.closed_form import ClosedForm, Way
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.ways import FloorPlan, pe_stem

ELEMENT_BYTES = 4
"""int32: all its sums are exact."""
ARRIVAL_COPIES = 2
"""Passes of a slot through the port of TCM when it is copied from TCM to scratch: out and in."""


@dataclass(frozen=True)
class AlphaBeta:
    """Alpha and B of one path between two PEs."""

    alpha_ps: int
    gbs: Fraction

    def ps(self, nbytes: Fraction | int) -> Fraction:
        """Time of one message."""
        return self.alpha_ps + self.moving_ps(nbytes)

    def moving_ps(self, nbytes: Fraction | int) -> Fraction:
        """The part of it that the bytes take."""
        return Fraction(nbytes) * 1000 / self.gbs


@dataclass(frozen=True)
class ReceiveRing:
    """The receive ring between two ranks, its credits, and the packets that write a slot."""

    slots: int
    slot_bytes: int
    credit_bytes: int
    packet_bytes: int

    @property
    def ring_bytes(self) -> int:
        """Size of the largest message."""
        return self.slots * self.slot_bytes


class RingTimeParts(Struct, frozen=True, forbid_unknown_fields=True):
    """The time of the ring, in picoseconds: the two terms of the textbook form, then what it omits.

    `alpha_ps` is paid by every block; `copy_ps` is the copy of the last slot of every message,
    `add_ps` the additions, `credit_ps` the wait for credits, `memory_ps` the loads and stores
    of the blocks.
    """

    alpha_ps: float
    moving_ps: float
    copy_ps: float
    add_ps: float
    credit_ps: float
    memory_ps: float

    @property
    def total_ps(self) -> float:
        """The whole time."""
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


class AllReduceTheory:
    """The closed forms for the SIPs of a topology file, connected as `network`."""

    def __init__(self, topology_yaml: str, network: SipNetwork) -> None:
        self._file, self._form = TopologyFile.of(topology_yaml), ClosedForm(topology_yaml)
        self._plan, self._network = FloorPlan(self._file), network
        self.paths = RingPaths.of(topology_yaml, network.sips)

    def alpha_beta_ps(self, algorithm: str, nbytes: int) -> float:
        """The textbook form for `nbytes` a PE."""
        if algorithm == "ring":
            return float(
                self._ring_alphas_ps()
                + 2 * (self._network.sips - 1) * self.ring_link.moving_ps(self._part(nbytes))
            )
        return float(self._intercube_ps(nbytes))

    def least_ps(self, algorithm: str, nbytes: int) -> float:
        """A lower bound of every run.

        The ring sends whole messages, so its textbook form is one. The blocks of `intercube` may be
        pipelined: then its bytes pass only one step.
        """
        if algorithm == "ring":
            return self.alpha_beta_ps(algorithm, nbytes)
        return float(
            self._intercube_ps(0)
            + self._between_sips(0, 1).moving_ps(nbytes) / max(self._network.w, self._network.h)
        )

    @property
    def ring_link(self) -> AlphaBeta:
        """Between the ranks of the ring that are farthest apart.

        Paths of the ring over one link share its bandwidth.
        """
        link = self._between_sips(0, max(self.paths.hops))
        return AlphaBeta(link.alpha_ps, link.gbs / self.paths.busiest)

    def parts(self, nbytes: int, ring: ReceiveRing) -> RingTimeParts:
        """The time of the ring for `nbytes` a PE, with queues in TCM."""
        block = ring.ring_bytes * self._network.sips
        blocks = [self._block(min(block, nbytes - at), ring) for at in range(0, nbytes, block)]
        totals = (float(sum(same)) for same in zip(*blocks, strict=True))
        return RingTimeParts(*totals)

    def _block(self, nbytes: int, ring: ReceiveRing) -> tuple[Fraction, ...]:
        """The fields of `RingTimeParts`, of one block."""
        ranks, part = self._network.sips, self._part(nbytes)
        alphas_ps, moving_ps = Fraction(self._ring_alphas_ps()), self.ring_link.moving_ps(part)
        copy_ps, add_ps = self._copy_ps(min(part, Fraction(ring.slot_bytes))), self._add_ps(part)
        # Delay of a message that waits for credits, if nothing is added to it before it is sent.
        # An addition hides as much of the delay as it takes.
        late_ps = self._round_ps(part, ring) - (self.ring_link.alpha_ps + moving_ps + copy_ps)
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

    def _round_ps(self, part: Fraction, ring: ReceiveRing) -> Fraction:
        """Time from the start of a message until the next can start: a credit for its first slot.

        Zero if enough slots are unused. Else the first slot it lacks is the first of this message.
        """
        slots = ceil(part / ring.slot_bytes)
        unused = ring.slots - slots
        if unused >= slots:
            return Fraction(0)
        link, slot = self.ring_link, Fraction(min(part, ring.slot_bytes))
        credit_ps = self._credit_alpha_ps() + link.moving_ps(ring.credit_bytes)
        held_ps = self._held_ps(ring) if slots > 1 else 0
        return (
            link.ps(slot)
            + held_ps
            + self._copy_ps(slot)
            + credit_ps
            - unused * link.moving_ps(slot)
        )

    def _held_ps(self, ring: ReceiveRing) -> Fraction:
        """Wait of a copy for the packet behind its slot, which holds the port of TCM."""
        prepared_ps = self._form.ps("pe.ipcq.overhead_ns") + self._form.ps("pe.dma.overhead_ns")
        return max(self.ring_link.moving_ps(ring.packet_bytes) - prepared_ps, Fraction(0))

    def _credit_alpha_ps(self) -> int:
        """Alpha of a credit: that of a message without its command and its DMA."""
        return self.ring_link.alpha_ps - self._issue_ps() - self._form.ps("pe.dma.overhead_ns")

    def _part(self, nbytes: int) -> Fraction:
        return Fraction(nbytes, self._network.sips)

    def _ring_alphas_ps(self) -> int:
        """The alphas of 2(p-1) successive steps, from the rank where their sum is largest."""
        hops, steps = self.paths.hops, 2 * (self._network.sips - 1)
        alphas = [self._between_sips(0, count).alpha_ps for count in hops]
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

    def _between_sips(self, cube: int, hops: int) -> AlphaBeta:
        stem = self._plan.cube.pe(0)
        return self._link(self._plan.between((cube, stem), (cube, stem), hops))

    def _between_cubes(self, cube: int, other: int) -> AlphaBeta:
        stem = self._plan.cube.pe(0)
        return self._link(self._plan.between((cube, stem), (other, stem)))

    def _link(self, between: Way) -> AlphaBeta:
        out, into = pe_stem(self._plan.cube.pe(0))
        path, form = out + between + into, self._form
        own_ps = self._issue_ps() + form.ps("pe.dma.overhead_ns") + form.ps("pe.ipcq.overhead_ns")
        return AlphaBeta(own_ps + form.latency_ps(path), form.narrowest_gbs(path))

    def _issue_ps(self) -> int:
        return self._form.ps("pe.cpu.overhead_ns") + self._form.ps("pe.scheduler.overhead_ns")

    def _copy_ps(self, nbytes: Fraction) -> Fraction:
        """Copy of the last slot of a message from the receive ring to scratch."""
        port_ps = nbytes * 1000 / self._form.number("pe.tcm.bw_gbs")
        return self._form.ps("pe.dma.overhead_ns") + ARRIVAL_COPIES * port_ps

    def _add_ps(self, nbytes: Fraction) -> Fraction:
        """Addition of two tiles: both are fetched, added, and the sum is stored."""
        number = self._form.number
        cycles = number("pe.math.pipeline_cycles") + ceil(
            nbytes / ELEMENT_BYTES / number("pe.math.lanes")
        )
        ports_ps = 3 * nbytes * 1000 / number("pe.fetch_store.bw_gbs")
        return self._issue_ps() + ports_ps + cycles * 1000 / number("pe.math.clock_ghz")

    def _memory_ps(self, nbytes: Fraction | int) -> Fraction:
        """One load or store in the PE's own slice: address translation, crossbar there and back."""
        form = self._form
        own_ps = (
            self._issue_ps()
            + form.ps("pe.mmu.overhead_ns")
            + form.ps("pe.dma.overhead_ns")
            + 2 * form.ps("xbar.overhead_ns")
        )
        return own_ps + Fraction(nbytes) * 1000 / Fraction(str(self._file.slice_gbs))
