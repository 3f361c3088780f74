"""Runs any all-reduce on a whole system and collects the results which group i checks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from math import nan

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.paths.routes import TCM_GBS, UCIE_GBS
from kernbench.oracle.theory.paths.sip_grid import SipLink
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core import dtypes
from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.plain_yaml import from_yaml, to_yaml
from runtime.core.errors import InvariantError, IpcqDeadlock
from runtime.core.rng import seeded

CREDIT_BYTES = RingQueue.credit_bytes
DIRECT_PORT = "ucie.sip"
"""Prefix of a port to another SIP, before its number; a port to a switch has another name."""
STEADY_PORT = 4
"""Least ratio of the bandwidth of the TCM port to that of the link between SIPs.

With it, only the link limits a stream of slots."""


@dataclass(frozen=True)
class AllReduceQueue(RingQueue):
    """The queues of a run; `kind` is the memory of the receive rings: `tcm`, `hbm` or `sram`."""

    kind: str = "tcm"

    @property
    def ccl(self) -> str:
        """`ccl.yaml` with these queues."""
        return _with_queue(self)


PIPELINE_QUEUE = AllReduceQueue(slots=16, slot_bytes=4096, packet_bytes=2048)
"""The queues of pipelined algorithms in the shipped `ccl.yaml`."""
PIPELINE_RATIO = 1.15
"""The most that a pipeline needs of its form: its steps overlap, its ends do not."""


@cache
def _with_queue(queue: AllReduceQueue) -> str:
    content = from_yaml(read_text(default_file("ccl.yaml")))
    content["defaults"] |= {
        "buffer_kind": queue.kind,
        "n_slots": queue.slots,
        "slot_size": queue.slot_bytes,
        "vc_chunk_size": queue.packet_bytes,
        "ipcq_credit_size_bytes": queue.credit_bytes,
        "algorithm": "intercube",
    }
    # The queues of this run, without the overrides of an algorithm.
    for entry in content["algorithms"].values():
        entry.pop("vc_chunk_size", None)
    # null is the last cube, which exists in every cube mesh.
    content["algorithms"]["intercube"] |= {"root_cube": None, "mapper": "cube_leaders"}
    return to_yaml(content)


@dataclass(frozen=True)
class AllReduce:
    """An all-reduce of `elements` int32 on each of the first `pes` PEs of every cube.

    The elements are drawn with `seed`; without a seed, the run has no data.
    """

    algorithm: str
    pes: int
    elements: int
    queue: AllReduceQueue
    seed: int | None = None


@dataclass(frozen=True)
class AllReduceOutcome:
    """The results of a run.

    `span_ps` is from the start of the first kernel to the end of the last kernel, `wrong` the
    number of wrong elements, `away` the number of credits not returned to their senders.
    `between_sips` has the bytes of each direct link between SIPs; `inside` those of the links of
    SIP 0 that have a bandwidth, by their index in the graph. A run that deadlocks or breaks an
    invariant of the model has no results: its numbers are nan, and `problem` has the reason.
    """

    span_ps: float = nan
    wrong: float = nan
    away: float = nan
    between_sips: dict[SipLink, int] = field(default_factory=dict[SipLink, int])
    inside: dict[int, int] = field(default_factory=dict[int, int])
    problem: str = ""

    def described(self, text: str) -> str:
        """The text of a check; followed by the problem of the run if there is one."""
        return f"{text}: {self.problem}" if self.problem else text


def on_direct_links(file: TopologyFile, sips: int) -> TopologyFile:
    """A ring of `sips` SIPs with a link of its own between each two neighbours."""
    return file.on_a_ring(sips).with_values({"system.sips.fabric": "direct"})


def on_a_grid(file: TopologyFile, columns: int, rows: int, *, wraps: bool = False) -> TopologyFile:
    """A grid of SIPs with a link of its own between each two neighbours; with `wraps`, the ends of
    rows and columns are neighbours.
    """
    return file.on_a_grid("torus_2d" if wraps else "mesh_2d_no_wrap", columns, rows)


def closed_form_machine(file: TopologyFile) -> TopologyFile:
    """One cube per SIP, credits as large as control packets, and a TCM port that delays no stream.

    The closed forms of the all-reduces assume this.
    """
    # A slot passes the port of the TCM several times: a port as fast as the link would set the
    # pace, and the forms have no term for it.
    link_gbs = float(file.number(UCIE_GBS))
    return file.with_values(
        {
            "control_bytes": CREDIT_BYTES,
            "sip.cube_mesh": {"w": 1, "h": 1},
            TCM_GBS: max(file[TCM_GBS], STEADY_PORT * link_gbs),
        }
    )


def with_few_pes(file: TopologyFile) -> TopologyFile:
    """One PE in each of the first two corners of a cube that have PEs."""
    return file.with_values(
        {
            "cube.pe_layout.pe_per_corner": 1,
            "cube.pe_layout.corners": file["cube.pe_layout.corners"][:2],
        }
    )


def with_scratch(file: TopologyFile, nbytes: int) -> TopologyFile:
    """A file with `nbytes` of scratch memory for collectives, in a TCM larger by the difference."""
    mb = max(file["pe.tcm.collective_scratch_mb"], -(-nbytes >> 20))
    more_mb = mb - file["pe.tcm.collective_scratch_mb"]
    return file.with_values(
        {"pe.tcm.collective_scratch_mb": mb, "pe.tcm_mb": file["pe.tcm_mb"] + more_mb}
    )


def outcome_of(file: TopologyFile, case: AllReduce) -> AllReduceOutcome:
    """Run one all-reduce on the system of a file."""
    sips, has_data = int(file["system.sips.count"]), case.seed is not None
    shape = file.cubes, case.pes * case.elements

    def program(rank: int) -> int:
        torch.distributed.init_process_group("ahbm", algorithm=case.algorithm)
        policy = DPPolicy(cube="row_wise", pe="column_wise", num_pes=case.pes)
        tensor = torch.empty(*shape, dtype=dtypes.int32, dp=policy)
        if case.seed is not None:
            tensor.copy_(_drawn(case.seed, rank, shape))
        torch.distributed.all_reduce(tensor)
        torch.ahbm.synchronize()
        if not has_data:
            return 0
        return int(np.count_nonzero(tensor.numpy() != _right(case, sips, shape)))

    return outcome_of_program(file, program, case.queue, data=has_data)


def outcome_of_program(
    file: TopologyFile, program: Callable[[int], int], queue: AllReduceQueue, *, data: bool
) -> AllReduceOutcome:
    """Run a rank program, which returns the number of its wrong elements."""
    sips = int(file["system.sips.count"])
    try:
        world = simulate(program, sips, topology=file.text, ccl=queue.ccl, data=data)
    except (IpcqDeadlock, InvariantError) as error:
        return AllReduceOutcome(problem=str(error).splitlines()[0])
    return _seen(world)


def _seen(world: Simulation) -> AllReduceOutcome:
    chips = world.node.chips
    # Kernels only: the commands of the host before and after them are not part of an algorithm.
    kernels = [record for _, record in world.of("pe_cpu.collective", "kernel")]
    pointers = [each for chip in chips.values() for pe in chip.pes for each in pe.ipcq.pointers()]
    return AllReduceOutcome(
        span_ps=max(each.end_ps for each in kernels) - min(each.start_ps for each in kernels),
        wrong=sum(world.returned.values()),
        away=sum(each.n_slots - each.credits for each in pointers),
        between_sips={
            (sip, int(port.name.removeprefix(DIRECT_PORT))): port.nbytes
            for sip, chip in chips.items()
            for port in chip.boundary.ports
            if port.name.startswith(DIRECT_PORT)
        },
        inside={
            index: server.nbytes
            for index, server in enumerate(chips[0].fabric.servers)
            if server is not None
        },
    )


def _drawn(seed: int, rank: int, shape: tuple[int, int]) -> np.ndarray:
    """Random int32 over the whole range."""
    nbytes = shape[0] * shape[1] * ITEM_BYTES
    return np.frombuffer(seeded(seed, rank).randbytes(nbytes), np.int32).reshape(shape)


def _right(case: AllReduce, sips: int, shape: tuple[int, int]) -> np.ndarray:
    """The sums modulo 2^32 over the ranks; in `intercube` over the cubes, too.

    In `hierarchical` also over all PEs.
    """
    shards = [_drawn(case.seed or 0, rank, shape) for rank in range(sips)]
    total = np.add.reduce(shards, dtype=np.int32)
    if case.algorithm == "hierarchical":
        of_pes = np.add.reduce(total.reshape(-1, case.elements), dtype=np.int32)
        return np.broadcast_to(np.tile(of_pes, case.pes), shape)
    if case.algorithm == "intercube":
        return np.broadcast_to(np.add.reduce(total, dtype=np.int32), shape)
    return total
