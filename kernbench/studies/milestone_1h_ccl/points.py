"""What is simulated: all-reduces by size and SIP topology, by kind of queue, and on the numbers of the reference."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from kernbench.studies.milestone_1h_ccl.networks import NETWORKS, Network
from kernbench.studies.milestone_1h_ccl.reference import ALPHA_NS, GBS
from kernbench.studies.milestone_1h_ccl.theory import ELEMENT_BYTES, Queue, Theory
from kernbench.theory.topology_file import TopologyFile
from runtime.ccl.config import AlgorithmConfig, parse_ccl
from runtime.core.errors import UsageError

SMALLEST_BYTES, STEP = 256, 4
ALGORITHMS = ("ring", "intercube")
INTERCUBE_BYTES = 131_072
"""Bytes a PE times SIPs, at most: `intercube` works on every cube, so that a byte costs many times the events."""
KINDS = ("tcm", "hbm", "sram")
KIND_BYTES = (1024, 4096, 16_384, 65_536)
"""Sizes a PE of the sweep over kinds."""
REFERENCE_SLOTS = {8: (4, 8, 32), 16: (4, 16)}
"""Slots of a receive ring by the number of SIPs: as in the shipped file, as many blocks as ASTRA-sim has chunks, one block."""
REFERENCE_BYTES = 1 << 20
_REFERENCE_SCRATCH_MB = 4


@dataclass(frozen=True)
class Point:
    """One all-reduce of `nbytes` a PE. The files are given as text."""

    topology: str
    ccl: str
    part: str
    network: Network
    algorithm: str
    buffer_kind: str
    nbytes: int

    @property
    def config(self) -> AlgorithmConfig:
        """The algorithm with all its parameters."""
        return parse_ccl(self.ccl, "ccl.yaml").resolve(self.algorithm)

    @property
    def queue(self) -> Queue:
        """The receive rings."""
        config = self.config
        return Queue(
            config.n_slots, config.slot_size, config.ipcq_credit_size_bytes, config.vc_chunk_size
        )

    @property
    def theory(self) -> Theory:
        """The closed forms."""
        return Theory(self.topology, self.network)

    @property
    def cost(self) -> int:
        """What simulating it costs, roughly: the bytes that links between PEs carry, and the PEs there are."""
        return self.network.sips * (self.nbytes * (1 if self.algorithm == "ring" else 16) + 50_000)

    def __str__(self) -> str:
        return f"{self.network} {self.algorithm} {self.buffer_kind} {self.queue.slots} slots {self.nbytes} B"


def plan_points(topology: str, ccl: str, max_bytes: int) -> tuple[Point, ...]:
    """All points, none twice; raises `UsageError` where `max_bytes` leaves no size for one of the sweeps."""
    if max_bytes < KIND_BYTES[0]:
        raise UsageError(
            f"--max-bytes {max_bytes}: the sizes of the sweep over kinds of queues start at {KIND_BYTES[0]} bytes a PE"
        )
    file, queues = TopologyFile.of(topology), yaml.safe_load(ccl)
    return (
        *_by_size(file, queues, max_bytes),
        *_by_kind(file, queues, max_bytes),
        *_on_the_reference(file, queues),
    )


def sizes(network: Network, algorithm: str, max_bytes: int) -> Iterator[int]:
    """Bytes a PE, each so many times the one before."""
    most_bytes = INTERCUBE_BYTES // network.sips if algorithm == "intercube" else max_bytes
    nbytes = SMALLEST_BYTES
    while nbytes <= min(max_bytes, most_bytes):
        yield nbytes
        nbytes *= STEP


def _by_size(file: TopologyFile, queues: dict[str, Any], max_bytes: int) -> Iterator[Point]:
    for network in NETWORKS:
        text = _joined(file, network)
        for algorithm in ALGORITHMS:
            for nbytes in sizes(network, algorithm, max_bytes):
                yield Point(text, _queues(queues), "size", network, algorithm, "tcm", nbytes)


def _by_kind(file: TopologyFile, queues: dict[str, Any], max_bytes: int) -> Iterator[Point]:
    network = NETWORKS[0]
    text = _joined(file, network)
    for kind in KINDS:
        for nbytes in KIND_BYTES:
            if nbytes <= max_bytes:
                yield Point(
                    text, _queues(queues, buffer_kind=kind), "kind", network, "ring", kind, nbytes
                )


def _on_the_reference(file: TopologyFile, queues: dict[str, Any]) -> Iterator[Point]:
    variant = reference_variant(file)
    for ranks, all_slots in REFERENCE_SLOTS.items():
        network = Network("ring_1d", ranks, 1)
        text = _joined(variant, network)
        for slots in all_slots:
            # A packet a slot needs a sixteenth of the events. Only copies see it, behind the packet that comes in; the closed
            # form has that as well.
            slot_bytes = queues["defaults"]["slot_size"]
            ccl = _queues(queues, buffer_kind="tcm", n_slots=slots, vc_chunk_size=slot_bytes)
            yield Point(text, ccl, "reference", network, "ring", "tcm", REFERENCE_BYTES)


def reference_variant(file: TopologyFile) -> TopologyFile:
    """The file with other numbers: in a ring a message without bytes takes 500 ns, and 50 GB/s is the narrowest place.

    A SIP has one cube. What is left of the 500 ns is the overhead of the UCIe ports, of which each message passes equally many.
    """
    pair = Network("ring_1d", 2, 1)
    narrow = file.with_values(
        {
            "sip.cube_mesh": {"w": 1, "h": 1},
            "ucie.bw_gbs": GBS,
            "pe.tcm.collective_scratch_mb": _REFERENCE_SCRATCH_MB,
        }
    )

    def alpha_ps(overhead_ns: float) -> int:
        return Theory(
            _joined(narrow.with_values({"ucie.overhead_ns": overhead_ns}), pair), pair
        ).ring_link.alpha_ps

    without_ps, with_1_ns_ps = alpha_ps(0), alpha_ps(1)
    overhead_ns = round((ALPHA_NS * 1000 - without_ps) / (with_1_ns_ps - without_ps), 3)
    return narrow.with_values({"ucie.overhead_ns": overhead_ns})


def _joined(file: TopologyFile, network: Network) -> str:
    return file.with_values({"system.sips": file["system.sips"] | network.section}).text


def _queues(queues: dict[str, Any], **values: Any) -> str:
    """The file with other defaults, which no algorithm overrides: so a point has what it says."""
    values = {"buffer_kind": "tcm"} | values
    algorithms = {
        name: {key: value for key, value in queues["algorithms"][name].items() if key not in values}
        for name in ALGORITHMS
    }
    defaults = queues["defaults"] | values | {"algorithm": "ring"}
    return yaml.safe_dump({"defaults": defaults, "algorithms": algorithms})


def elements(nbytes: int) -> int:
    """Elements of a shard."""
    return nbytes // ELEMENT_BYTES
