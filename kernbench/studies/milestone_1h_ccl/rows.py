"""The points of the study, its rows, and the content of `ccl_sweep.json`.

All-reduces by size and SIP topology, by queue memory, and with the parameters of ASTRA-sim.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from kernbench.benches.flags import check_range
from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.catalogue import sizes_by_factor
from kernbench.studies.milestone_1h_ccl.networks import NETWORKS, RingLayout, SipNetwork
from kernbench.studies.milestone_1h_ccl.reference import ALPHA_NS, GBS
from kernbench.studies.milestone_1h_ccl.theory import AllReduceTheory, RingTimeParts
from kernbench.studies.study_results import StudyResults, below_bound, wrong_count
from runtime.ccl.config import AlgorithmConfig, parse_ccl
from runtime.core.config.plain_yaml import from_yaml, to_yaml

SMALLEST_BYTES, STEP = 256, 4
ALGORITHMS = ("ring", "intercube")
KINDS = ("tcm", "hbm", "sram")
KIND_BYTES = (1024, 4096, 16_384, 65_536)
"""Sizes of the part `kind`, bytes a PE."""
MOST_BYTES = 1 << 26
"""Largest size, bytes a PE."""
REFERENCE_SLOTS = {8: (4, 8, 32), 16: (4, 16)}
"""Slots of a receive ring by SIPs: fewer and more than cover bandwidth x delay of a step."""
REFERENCE_BYTES = 1 << 20


@dataclass(frozen=True)
class CclPoint:
    """One all-reduce of `nbytes` a PE, with the text of both configuration files."""

    topology: str
    ccl: str
    part: str
    network: SipNetwork
    nbytes: int
    algorithm: str = "ring"
    buffer_kind: str = "tcm"

    @property
    def config(self) -> AlgorithmConfig:
        """The algorithm with all its parameters."""
        return parse_ccl(self.ccl, "ccl.yaml").resolve(self.algorithm)

    @property
    def queue(self) -> RingQueue:
        """The queue between two ranks."""
        config = self.config
        return RingQueue(
            slots=config.n_slots,
            slot_bytes=config.slot_size,
            credit_bytes=config.ipcq_credit_size_bytes,
            packet_bytes=config.vc_chunk_size,
        )

    @property
    def theory(self) -> AllReduceTheory:
        """The closed forms."""
        return AllReduceTheory(self.topology, self.network, self.queue)

    @property
    def cost(self) -> int:
        """Events grow with the bytes on the links between PEs, and with the PEs that are built."""
        # `intercube` sends the bytes between all 16 cubes of the shipped file.
        return self.network.sips * (self.nbytes * (1 if self.algorithm == "ring" else 16) + 50_000)

    def __str__(self) -> str:
        slots = self.queue.slots
        return f"{self.network} {self.algorithm} {self.buffer_kind} {slots} slots {self.nbytes} B"


def plan_points(topology: str, ccl: str, max_bytes: int) -> tuple[CclPoint, ...]:
    """All points, none twice; raises `UsageError` if `max_bytes` leaves a part without a size."""
    check_range(KIND_BYTES[0], MOST_BYTES, max_bytes=max_bytes)
    file, queues = TopologyFile.of(topology), from_yaml(ccl)
    return (
        *_by_size(file, queues, max_bytes),
        *_by_kind(file, queues, max_bytes),
        *_on_the_reference(file, queues),
    )


def _by_size(file: TopologyFile, queues: dict[str, Any], max_bytes: int) -> Iterator[CclPoint]:
    for network in NETWORKS:
        text = joined(file, network)
        for algorithm in ALGORITHMS:
            for nbytes in sizes_by_factor(SMALLEST_BYTES, max_bytes, STEP):
                yield CclPoint(text, _queues(queues), "size", network, nbytes, algorithm)


def _by_kind(file: TopologyFile, queues: dict[str, Any], max_bytes: int) -> Iterator[CclPoint]:
    network = NETWORKS[0]
    text = joined(file, network)
    for kind in KINDS:
        ccl = _queues(queues, buffer_kind=kind)
        for nbytes in KIND_BYTES:
            if nbytes <= max_bytes:
                yield CclPoint(text, ccl, "kind", network, nbytes, buffer_kind=kind)


def _on_the_reference(file: TopologyFile, queues: dict[str, Any]) -> Iterator[CclPoint]:
    variant = reference_variant(file)
    for ranks, all_slots in REFERENCE_SLOTS.items():
        network = SipNetwork("ring_1d", ranks, 1)
        text = joined(variant, network)
        for slots in all_slots:
            # Small packets: from this narrow link, a large one would hold the port of the TCM for
            # longer than a send needs.
            packet_bytes = queues["defaults"]["vc_chunk_size"]
            ccl = _queues(queues, n_slots=slots, vc_chunk_size=packet_bytes)
            yield CclPoint(text, ccl, "reference", network, REFERENCE_BYTES)


def reference_variant(file: TopologyFile) -> TopologyFile:
    """The parameters of ASTRA-sim's example: a ring step has alpha 500 ns, bandwidth 50 GB/s.

    A SIP has one cube. The overhead of a UCIe port is set so that alpha becomes 500 ns: all
    messages of the ring pass the same number of ports.
    """
    pair = SipNetwork("ring_1d", 2, 1)
    narrow = file.with_values({"sip.cube_mesh": {"w": 1, "h": 1}, "ucie.bw_gbs": GBS})

    def alpha_ps(overhead_ns: float) -> int:
        text = joined(narrow.with_values({"ucie.overhead_ns": overhead_ns}), pair)
        return int(AllReduceTheory(text, pair).ring_link.alpha_ps)

    # Alpha is linear in the overhead, so two values of it give the slope.
    without_ps, with_1_ns_ps = alpha_ps(0), alpha_ps(1)
    overhead_ns = round((ALPHA_NS * 1000 - without_ps) / (with_1_ns_ps - without_ps), 3)
    return narrow.with_values({"ucie.overhead_ns": overhead_ns})


def joined(file: TopologyFile, network: SipNetwork) -> str:
    """The topology file with the SIPs of a network."""
    return file.with_values({"system.sips": file["system.sips"] | network.section}).text


def _queues(queues: dict[str, Any], **values: Any) -> str:
    """`ccl.yaml` with other defaults; algorithms lose these keys, which would override them."""
    # Explicit: the defaults of the user's file must not change what the study measures.
    values = {"buffer_kind": "tcm"} | values
    algorithms = {
        name: {key: value for key, value in queues["algorithms"][name].items() if key not in values}
        for name in ALGORITHMS
    }
    defaults = queues["defaults"] | values | {"algorithm": "ring"}
    return to_yaml({"defaults": defaults, "algorithms": algorithms})


def elements(nbytes: int) -> int:
    """Elements of a shard."""
    return nbytes // ITEM_BYTES


PARTS = ("size", "kind", "reference")
"""Parts of the study: sweep over sizes, sweep over queue memories, parameters of ASTRA-sim."""


class CclRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One all-reduce of `nbytes` a PE: its simulated time, and the times of the closed forms.

    `skew_ps` is the time between the first and the last start of the kernels, `wrong` the number of
    wrong elements over all ranks. `slot_in_ps` is the time of a slot from its sender's DMA until
    its announcement at the receiver, `slot_out_ps` the time of the receiver's DMA to copy it to
    scratch, both of the median slot, 0 where kernels use messages in their slots; `link_gbs` is the
    least bandwidth between two ranks. `least_ps` is a lower bound, `alpha_beta_ps` the textbook
    form, which is none for a pipeline; `parts` explains the ring with queues in TCM.
    """

    part: str
    network: SipNetwork
    algorithm: str
    buffer_kind: str
    slots: int
    slot_bytes: int
    nbytes: int
    time_ps: int
    skew_ps: int
    wrong: int
    slot_in_ps: int
    slot_out_ps: int
    link_gbs: float
    least_ps: float
    alpha_beta_ps: float
    parts: RingTimeParts | None

    @property
    def ratio(self) -> float:
        """Measured time over the textbook form."""
        return self.time_ps / self.alpha_beta_ps

    @property
    def busbw_gbs(self) -> float:
        """Bus bandwidth as nccl-tests defines it for an all-reduce: 2(p-1)/p bytes over time."""
        ranks = self.network.sips
        return 2 * (ranks - 1) / ranks * self.nbytes * 1000 / self.time_ps

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the row: no two rows of a file have the same."""
        return self.part, self.network, self.algorithm, self.buffer_kind, self.slots, self.nbytes

    @property
    def label(self) -> str:
        """Network, algorithm, queue memory and size."""
        return f"{self.network} {self.algorithm} {self.buffer_kind} {self.nbytes} B"

    @property
    def faults(self) -> list[str]:
        """A wrong sum, kernels that start at different times, a time below the bound."""
        faults = [*wrong_count(self.wrong)]
        if self.skew_ps:
            faults.append(
                f"kernels start {self.skew_ps:,} ps apart, "
                "the time is not that of the all-reduce alone"
            )
        faults += below_bound(self.time_ps, self.least_ps)
        return faults


class CclResults(StudyResults[CclRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the networks of the part `size` with the ring in each of them."""

    networks: tuple[SipNetwork, ...]
    layouts: tuple[RingLayout, ...]

    def of(self, part: str) -> list[CclRow]:
        """The rows of one of `PARTS`."""
        return [row for row in self.rows if row.part == part]
