"""Closed forms of an all-reduce, from the topology file alone, and what the ring adds to them.

**alpha** is the time of a message without bytes: issue of the command, start of the DMA, all
overheads and wires of the path, and the IPCQ that announces the slot. **B** is the least bandwidth
on the path, **M** that of a PE's memory slice. A message of m bytes takes alpha + m/B: forwarding
is cut-through, so bytes are paid once, at the bottleneck, independently of the number of SIPs that
forward them.

    ring       2(p-1) alpha + max(2(p-1)/p n/B, 2n/M)     reduce-scatter and all-gather
    intercube  2(W-1 + H-1)(alpha_c + n/B_c)    to the root cube along the rows and column of the
                                                W x H cubes, and back
               + for each dimension of SIPs: a ring where it is closed,
                 else 2(k-1)(alpha + n/B) for k SIPs in a row
               A shard of more than four slots moves as a pipeline each way: all alphas, and the
               bytes once, n/B_c instead of (W-1 + H-1) n/B_c and n/B instead of (k-1) n/B.

The ring is that of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication
Operations in MPICH", IJHPCA 19(1), 2005; every byte is read once and written once.

The textbook form of the ring is no bound: of a large buffer, messages of one step are on the link
while others pay alpha. Nor does it contain the work of a PE. `RingTimeParts` divides the time of
the recurrence of the ring (`ring_recurrence`), with queues in TCM, by what the recurrence gains
without a term.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from msgspec import Struct

from kernbench.oracle.theory.alpha_beta import AlphaBeta, RingQueue, all_reduce_bytes
from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.collectives.ring_recurrence import (
    IterationCosts,
    RingMessages,
    all_reduce_ps,
)
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_1h_ccl.networks import SipNetwork
from runtime.ccl.algorithms.intercube import SHORT_SLOTS
from runtime.ccl.pipelines.message_pipeline import MessageCut, RingQueues


class RingTimeParts(Struct, frozen=True, forbid_unknown_fields=True):
    """The time of the ring by its recurrence, in picoseconds, as terms that add up.

    `moving_ps` is the time of all bytes of a rank on its link. Of all else only what the link has
    to wait for is counted: `alpha_ps` the alphas and commands, `add_ps` the additions, `credit_ps`
    the credits, `memory_ps` the loads and stores.
    """

    alpha_ps: float
    moving_ps: float
    add_ps: float
    credit_ps: float
    memory_ps: float

    @property
    def total_ps(self) -> float:
        """The whole time."""
        return self.alpha_ps + self.moving_ps + self.add_ps + self.credit_ps + self.memory_ps


class AllReduceTheory:
    """The closed forms for the SIPs of a topology file, connected as `network`.

    `queue` is the queue between two ranks of the ring, which follows the links: each rank sends
    over one link to the next.
    """

    def __init__(
        self, topology_yaml: str, network: SipNetwork, queue: RingQueue | None = None
    ) -> None:
        self._file, self._network = TopologyFile.of(topology_yaml), network
        self._plan, self._queue = FloorPlan(self._file), queue or RingQueue()
        self._costs = KernelCosts(self._file, self._queue.packet_bytes)

    def alpha_beta_ps(self, algorithm: str, nbytes: int) -> float:
        """The textbook form for `nbytes` a PE."""
        if algorithm == "ring":
            moving_ps = max(self._moving_ps(nbytes), self._slice_ps(2 * nbytes))
            return float(self._steps * self.ring_link.alpha_ps + moving_ps)
        return float(self._intercube_ps(nbytes))

    def least_ps(self, algorithm: str, nbytes: int) -> float:
        """A lower bound of every run.

        Of the ring, all messages of a rank over its link, or all steps of its shortest message. The
        blocks of `intercube` may be pipelined: then its bytes pass only one step.
        """
        if algorithm == "ring":
            shortest = min(self._messages(nbytes).sizes)
            path_ps = self._steps * self.ring_link.message_ps(shortest)
            return float(max(path_ps, self.ring_link.alpha_ps + self._moving_ps(nbytes)))
        moving_ps = self._between_sips(0).bytes_ps(nbytes)
        return float(self._intercube_ps(0) + moving_ps / max(self._network.w, self._network.h))

    @property
    def ring_link(self) -> AlphaBeta:
        """Alpha and B between a rank of the ring and the next one."""
        return self._between_sips(0)

    def parts(self, nbytes: int) -> RingTimeParts | None:
        """The time of the ring for `nbytes` a PE, with queues in TCM; None if its receive ring has
        too few slots for messages that are used in place.
        """
        if not self._cut(nbytes).in_place:
            return None
        messages, costs = self._messages(nbytes), self._iteration_costs()
        whole_ps = all_reduce_ps(messages, costs)
        credited_ps = all_reduce_ps(messages, costs := costs.without_credits())
        added_ps = all_reduce_ps(messages, costs := costs.without_additions())
        loaded_ps = all_reduce_ps(messages, costs.without_memory())
        moving_ps = self._moving_ps(nbytes)
        return RingTimeParts(
            alpha_ps=float(loaded_ps - moving_ps),
            moving_ps=float(moving_ps),
            add_ps=float(credited_ps - added_ps),
            credit_ps=float(whole_ps - credited_ps),
            memory_ps=float(added_ps - loaded_ps),
        )

    @property
    def _steps(self) -> int:
        return 2 * (self._network.sips - 1)

    def _chunk(self, nbytes: int) -> int:
        """Elements of the largest chunk."""
        return ceil(Fraction(nbytes, self._network.sips * ITEM_BYTES))

    def _cut(self, nbytes: int) -> MessageCut:
        """The messages of the largest chunk, as the kernel of the ring cuts it."""
        queue = self._queue
        scratch_bytes = self._file["pe.tcm.collective_scratch_mb"] << 20
        queues = RingQueues(
            behind="",
            ahead="",
            n_slots=queue.slots,
            slot_bytes=queue.slot_bytes,
            room_bytes=min(queue.ring_bytes, scratch_bytes // 2),
        )
        return MessageCut.of(queues, self._chunk(nbytes), ITEM_BYTES)

    def _messages(self, nbytes: int) -> RingMessages:
        cut, queue = self._cut(nbytes), self._queue
        whole, rest = divmod(self._chunk(nbytes), cut.elements)
        slots = ceil(Fraction(cut.elements * ITEM_BYTES, queue.slot_bytes))
        return RingMessages(
            ranks=self._network.sips,
            sizes=[cut.elements * ITEM_BYTES] * whole + [rest * ITEM_BYTES] * (rest > 0),
            in_ring=queue.slots // slots,
            lag=cut.lag,
            held=cut.held,
            posted=cut.posted,
        )

    def _iteration_costs(self) -> IterationCosts:
        costs, link = self._costs, self.ring_link
        access_ps = costs.commands.translated_ps
        packet_bytes = self._file["packet_bytes"]
        # A credit is a message without a command and a DMA.
        credit_ps = link.message_ps(self._queue.credit_bytes) - costs.issue_ps
        credit_ps -= costs.commands.write_start_ps
        return IterationCosts(
            command_ps=costs.issue_ps,
            access_ps=access_ps,
            alpha_ps=Fraction(link.alpha_ps - costs.issue_ps),
            credit_ps=credit_ps,
            link_ps=link.bytes_ps,
            left_ps=costs.left_ps,
            add_ps=costs.add_ps,
            load_ps=lambda nbytes: costs.load_ps(nbytes) - access_ps,
            store_ps=lambda nbytes: costs.store_ps(nbytes) - access_ps,
            slice_ps=self._slice_ps,
            packet_ps=lambda nbytes: self._slice_ps(min(nbytes, packet_bytes)),
        )

    def _moving_ps(self, nbytes: int) -> Fraction:
        """2(p-1)/p n/B."""
        return self.ring_link.bytes_ps(all_reduce_bytes(self._network.sips, nbytes))

    def _slice_ps(self, nbytes: int) -> Fraction:
        return bytes_ps(nbytes, slice_gbs(self._file))

    def _intercube_ps(self, nbytes: int) -> Fraction:
        w, h = self._file["sip.cube_mesh.w"], self._file["sip.cube_mesh.h"]
        total = Fraction(0)
        # There and back, along a row and along a column of cubes; each hop sends the whole shard.
        hops = [self._between_cubes(0, 1)] * (w - 1) + [self._between_cubes(0, w)] * (h - 1)
        total += 2 * self._passed_ps(hops, nbytes)
        # The root cube is the last one, at the IO chiplet.
        link = self._between_sips(w * h - 1)
        for length in (self._network.w, self._network.h):
            # A closed dimension is a ring, which splits the shard; an open one sends it whole.
            if self._network.topology == "mesh_2d_no_wrap":
                total += 2 * self._passed_ps([link] * (length - 1), nbytes)
            else:
                total += link.ring_all_reduce_ps(length, nbytes)
        return total

    def _passed_ps(self, hops: Sequence[AlphaBeta], nbytes: int) -> Fraction:
        """A shard over successive hops: as a whole, or as a pipeline if it is long."""
        whole_ps = sum((hop.message_ps(nbytes) for hop in hops), Fraction(0))
        if not hops or nbytes <= SHORT_SLOTS * self._queue.slot_bytes:
            return whole_ps
        slowest_ps = max(hop.bytes_ps(nbytes) for hop in hops)
        return sum((Fraction(hop.alpha_ps) for hop in hops), slowest_ps)

    def _between_sips(self, cube: int) -> AlphaBeta:
        return self._costs.alpha_beta(self._plan.between_pes((cube, 0), (cube, 0), 1))

    def _between_cubes(self, cube: int, other: int) -> AlphaBeta:
        return self._costs.alpha_beta(self._costs.to_cube(cube, other))
