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

from fractions import Fraction
from math import ceil

from msgspec import Struct

from kernbench.studies.milestone_1h_ccl.networks import RingPaths, SipNetwork
from kernbench.theory.alpha_beta import AlphaBeta, RingQueue
from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.floor_plan import FloorPlan
from kernbench.theory.hbm import read_latency_ps
from kernbench.theory.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.theory.roofline import bytes_ps
from kernbench.theory.topology_file import TopologyFile

ARRIVAL_COPIES = 2
"""Passes of a slot through the port of TCM when it is copied from TCM to scratch: out and in."""


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


class AllReduceTheory:
    """The closed forms for the SIPs of a topology file, connected as `network`.

    `queue` is the queue between two ranks of the ring.
    """

    def __init__(
        self, topology_yaml: str, network: SipNetwork, queue: RingQueue | None = None
    ) -> None:
        self._file, self._network = TopologyFile.of(topology_yaml), network
        self._plan, self._queue = FloorPlan(self._file), queue or RingQueue()
        self._costs = KernelCosts(self._file, self._queue.packet_bytes)
        self.paths = RingPaths.of(topology_yaml, network.sips)

    def alpha_beta_ps(self, algorithm: str, nbytes: int) -> float:
        """The textbook form for `nbytes` a PE."""
        if algorithm == "ring":
            steps = 2 * (self._network.sips - 1)
            moving_ps = steps * self.ring_link.bytes_ps(self._part(nbytes))
            return float(self._ring_alphas_ps() + moving_ps)
        return float(self._intercube_ps(nbytes))

    def least_ps(self, algorithm: str, nbytes: int) -> float:
        """A lower bound of every run.

        The ring sends whole messages, so its textbook form is one. The blocks of `intercube` may be
        pipelined: then its bytes pass only one step.
        """
        if algorithm == "ring":
            return self.alpha_beta_ps(algorithm, nbytes)
        moving_ps = self._between_sips(0, 1).bytes_ps(nbytes)
        return float(self._intercube_ps(0) + moving_ps / max(self._network.w, self._network.h))

    @property
    def ring_link(self) -> AlphaBeta:
        """Between the ranks of the ring that are farthest apart.

        Paths of the ring over one link share its bandwidth.
        """
        link = self._between_sips(0, max(self.paths.hops))
        return AlphaBeta(link.alpha_ps, link.gbs / self.paths.busiest)

    def parts(self, nbytes: int) -> RingTimeParts:
        """The time of the ring for `nbytes` a PE, with queues in TCM."""
        block = self._queue.ring_bytes * self._network.sips
        blocks = [self._block(min(block, nbytes - at)) for at in range(0, nbytes, block)]
        return RingTimeParts(*(float(sum(same)) for same in zip(*blocks, strict=True)))

    def _block(self, nbytes: int) -> tuple[Fraction, ...]:
        """The fields of `RingTimeParts`, of one block."""
        ranks, part, link = self._network.sips, self._part(nbytes), self.ring_link
        moving_ps, add_ps = link.bytes_ps(part), self._add_ps(part)
        copy_ps = self._copy_ps(min(part, Fraction(self._queue.slot_bytes)))
        # Delay of a message that waits for credits, if nothing is added to it before it is sent.
        # An addition hides as much of the delay as it takes.
        late_ps = self._round_ps(part) - (link.alpha_ps + moving_ps + copy_ps)
        forwarded_ps, added_ps = max(late_ps, Fraction(0)), max(late_ps - add_ps, Fraction(0))
        steps = 2 * (ranks - 1)
        return (
            Fraction(self._ring_alphas_ps()),
            steps * moving_ps,
            steps * copy_ps,
            (ranks - 1) * add_ps,
            forwarded_ps * (ranks - 2) + added_ps * (ranks - 1),
            read_latency_ps(self._file) + self._memory_ps(nbytes) + ranks * self._memory_ps(part),
        )

    def _round_ps(self, part: Fraction) -> Fraction:
        """Time from the start of a message until the next can start: a credit for its first slot.

        Zero if enough slots are unused. Else the first slot it lacks is the first of this message.
        """
        queue, link = self._queue, self.ring_link
        slots = ceil(part / queue.slot_bytes)
        unused = queue.slots - slots
        if unused >= slots:
            return Fraction(0)
        slot = Fraction(min(part, queue.slot_bytes))
        credit_ps = self._credit_alpha_ps() + link.bytes_ps(queue.credit_bytes)
        held_ps = self._held_ps() if slots > 1 else 0
        slot_ps = link.message_ps(slot) + held_ps + self._copy_ps(slot)
        return slot_ps + credit_ps - unused * link.bytes_ps(slot)

    def _held_ps(self) -> Fraction:
        """Wait of a copy for the packet behind its slot, which holds the port of TCM."""
        # While the copy is prepared (IPCQ, DMA), the packet already passes.
        prepared_ps = self._costs.ipcq_ps + self._costs.dma_ps
        packet_ps = self.ring_link.bytes_ps(self._queue.packet_bytes)
        return max(packet_ps - prepared_ps, Fraction(0))

    def _credit_alpha_ps(self) -> Fraction:
        """Alpha of a credit: that of a message without its command and its DMA."""
        return Fraction(self.ring_link.alpha_ps - self._costs.issue_ps - self._costs.dma_ps)

    def _part(self, nbytes: int) -> Fraction:
        return Fraction(nbytes, self._network.sips)

    def _ring_alphas_ps(self) -> Fraction:
        """The alphas of 2(p-1) successive steps, from the rank where their sum is largest."""
        steps = 2 * (self._network.sips - 1)
        alphas = [self._between_sips(0, hops).alpha_ps for hops in self.paths.hops]
        # A part passes `steps` paths of the ring one after the other; the slowest part counts.
        sums = (
            sum(alphas[(start + step) % len(alphas)] for step in range(steps))
            for start in range(len(alphas))
        )
        return Fraction(max(sums))

    def _intercube_ps(self, nbytes: int) -> Fraction:
        w, h = self._file["sip.cube_mesh.w"], self._file["sip.cube_mesh.h"]
        total = Fraction(0)
        # There and back, along a row and along a column of cubes; each hop sends the whole shard.
        if w > 1:
            total += 2 * (w - 1) * self._between_cubes(0, 1).message_ps(nbytes)
        if h > 1:
            total += 2 * (h - 1) * self._between_cubes(0, w).message_ps(nbytes)
        # The root cube is the last one, at the IO chiplet.
        link = self._between_sips(w * h - 1, 1)
        for length in (self._network.w, self._network.h):
            # A closed dimension is a ring, which splits the shard; an open one sends it whole.
            open_ended = self._network.topology == "mesh_2d_no_wrap"
            sent = Fraction(nbytes, 1 if open_ended else length)
            total += 2 * (length - 1) * link.message_ps(sent)
        return total

    def _between_sips(self, cube: int, hops: int) -> AlphaBeta:
        return self._costs.alpha_beta(self._plan.between_pes((cube, 0), (cube, 0), hops))

    def _between_cubes(self, cube: int, other: int) -> AlphaBeta:
        return self._costs.alpha_beta(self._costs.to_cube(cube, other))

    def _copy_ps(self, nbytes: Fraction) -> Fraction:
        """Copy of the last slot of a message from the receive ring to scratch."""
        port_ps = bytes_ps(nbytes, self._file.number("pe.tcm.bw_gbs"))
        return self._costs.dma_ps + ARRIVAL_COPIES * port_ps

    def _add_ps(self, nbytes: Fraction) -> Fraction:
        """Addition of two tiles, of which a part of an element counts as a whole one."""
        return Fraction(self._costs.add_ps(ceil(nbytes / ITEM_BYTES) * ITEM_BYTES))

    def _memory_ps(self, nbytes: Fraction | int) -> Fraction:
        """One load or store in the PE's own slice: address translation, crossbar there and back.

        A load also waits for the first byte: `read_latency_ps`.
        """
        overheads_ps = (
            self._costs.issue_ps
            + self._file.ps("pe.mmu.overhead_ns")
            + self._costs.dma_ps
            + 2 * self._file.ps("xbar.overhead_ns")
        )
        return overheads_ps + bytes_ps(nbytes, slice_gbs(self._file))
