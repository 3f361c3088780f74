"""All-reduces of any kind on whole systems, and what the checks of group i want to know of them."""

from dataclasses import dataclass
from math import nan

import numpy as np
import yaml

from kernbench.validate.closed_form import UCIE_GBS, ClosedForm
from kernbench.validate.variant import Variant
from runtime import DPPolicy, torch
from runtime.core import dtypes
from runtime.core.config_file import default_file, read_text
from runtime.core.errors import InvariantError, IpcqDeadlock
from runtime.core.rng import seeded
from sip_node.local_run import World, simulate

ITEM_BYTES = dtypes.int32.itemsize
CREDIT_BYTES = 16
DIRECT_PORT = "ucie.sip"
"""Before the number of the SIP that a port leads to; a port to a switch has another name."""

STEADY_PORT = 4
"""How many times as wide as the link between SIPs the port of TCM is at least, so that only the link holds up a stream."""

Link = tuple[int, int]
"""From one SIP to another."""


@dataclass(frozen=True)
class Queues:
    """The queues of a run: the memory of the rings, their slots, the bytes of a slot and of a packet."""

    kind: str = "tcm"
    slots: int = 4
    slot_bytes: int = 4096
    packet_bytes: int = 256

    @property
    def ring_bytes(self) -> int:
        """A ring, which is also the largest message of an all-reduce."""
        return self.slots * self.slot_bytes

    @property
    def ccl(self) -> str:
        """`ccl.yaml` with such queues."""
        content = yaml.safe_load(read_text(default_file("ccl.yaml")))
        content["defaults"] |= {
            "buffer_kind": self.kind,
            "n_slots": self.slots,
            "slot_size": self.slot_bytes,
            "vc_chunk_size": self.packet_bytes,
            "ipcq_credit_size_bytes": CREDIT_BYTES,
            "algorithm": "intercube",
        }
        content["algorithms"]["intercube"] |= {"root_cube": None, "mapper": "cube_leaders"}
        return yaml.safe_dump(content)


@dataclass(frozen=True)
class AllReduce:
    """`elements` of int32 on each of the first `pes` PEs of every cube; without a seed for them the run is one without data."""

    algorithm: str
    pes: int
    elements: int
    queues: Queues
    seed: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run showed. A run that never ended or broke a law of the model has shown nothing, and `problem` says why.

    `span_ps` is from the start of the first kernel to the end of the last one, `wrong` how many elements are, `away` the
    credits that are not home. `between_sips` are the bytes that each direct link between SIPs carried, `inside` those of the
    links of SIP 0 by their index in the graph, as far as they have a bandwidth.
    """

    span_ps: float
    wrong: float
    away: float
    between_sips: dict[Link, int]
    inside: dict[int, int]
    problem: str = ""

    def said(self, says: str) -> str:
        """What a check says, and why there is nothing to check."""
        return f"{says}: {self.problem}" if self.problem else says


def on_direct_links(file: Variant, sips: int) -> Variant:
    """A ring of so many SIPs, each joined to its neighbours by links of its own."""
    ring = file.on_a_ring(sips)
    return ring.with_values({"system.sips.fabric": "direct"})


def on_a_grid(file: Variant, columns: int, rows: int) -> Variant:
    """A grid of SIPs without wrap, each joined to its neighbours by links of its own."""
    grid = {
        "count": columns * rows,
        "topology": "mesh_2d_no_wrap",
        "w": columns,
        "h": rows,
        "fabric": "direct",
    }
    return file.with_values({"system.sips": file["system.sips"] | grid})


def unhindered(file: Variant) -> Variant:
    """The same with one cube a SIP, credits as large as control packets, and a port of TCM that no stream waits for."""
    link_gbs = float(ClosedForm(file.text).number(UCIE_GBS))
    return file.with_values(
        {
            "control_bytes": CREDIT_BYTES,
            "sip.cube_mesh": {"w": 1, "h": 1},
            "pe.tcm.bw_gbs": max(file["pe.tcm.bw_gbs"], STEADY_PORT * link_gbs),
        }
    )


def with_few_pes(file: Variant) -> Variant:
    """The same with one PE in each of the first two corners of a cube that have any."""
    return file.with_values(
        {
            "cube.pe_layout.pe_per_corner": 1,
            "cube.pe_layout.corners": file["cube.pe_layout.corners"][:2],
        }
    )


def with_scratch(file: Variant, nbytes: int) -> Variant:
    """The same with room for so many bytes at least in the scratch of collectives."""
    mb = max(file["pe.tcm.collective_scratch_mb"], -(-nbytes >> 20))
    more = mb - file["pe.tcm.collective_scratch_mb"]
    return file.with_values(
        {"pe.tcm.collective_scratch_mb": mb, "pe.tcm_mb": file["pe.tcm_mb"] + more}
    )


def outcome_of(file: Variant, case: AllReduce) -> Outcome:
    """Run one all-reduce on the system of a file."""
    sips, cubes = int(file["system.sips.count"]), file.cubes
    shape = cubes, case.pes * case.elements

    def program(rank: int) -> int:
        torch.distributed.init_process_group("ahbm", algorithm=case.algorithm)
        pe = DPPolicy(cube="row_wise", pe="column_wise", num_pes=case.pes)
        tensor = torch.empty(*shape, dtype=dtypes.int32, dp=pe)
        if case.seed is not None:
            tensor.copy_(torch.from_numpy(_drawn(case.seed, rank, shape)))
        torch.distributed.all_reduce(tensor)
        torch.ahbm.synchronize()
        return (
            0
            if case.seed is None
            else int(np.count_nonzero(tensor.numpy() != _right(case, sips, shape)))
        )

    try:
        world = simulate(
            program, sips, topology=file.text, ccl=case.queues.ccl, data=case.seed is not None
        )
    except (IpcqDeadlock, InvariantError) as error:
        return Outcome(nan, nan, nan, {}, {}, str(error).splitlines()[0])
    return _seen(world)


def _seen(world: World) -> Outcome:
    chips = world.node.chips
    kernels = [record for _, record in world.of("pe_cpu.collective", "kernel")]
    span_ps = max(record.end_ps for record in kernels) - min(record.start_ps for record in kernels)
    pointers = [each for chip in chips.values() for pe in chip.pes for each in pe.ipcq.pointers()]
    between = {
        (sip, int(port.name.removeprefix(DIRECT_PORT))): port.nbytes
        for sip, chip in chips.items()
        for port in chip.boundary.ports
        if port.name.startswith(DIRECT_PORT)
    }
    away = sum(each.n_slots - each.credits for each in pointers)
    inside = {
        index: server.nbytes
        for index, server in enumerate(chips[0].fabric.servers)
        if server is not None
    }
    return Outcome(span_ps, sum(world.returned.values()), away, between, inside)


def _drawn(seed: int, rank: int, shape: tuple[int, int]) -> np.ndarray:
    """Any int32."""
    return np.frombuffer(
        seeded(seed, rank).randbytes(shape[0] * shape[1] * ITEM_BYTES), np.int32
    ).reshape(shape)


def _right(case: AllReduce, sips: int, shape: tuple[int, int]) -> np.ndarray:
    """The sums modulo 2^32: of every element over the ranks; in `intercube` over cubes too, in `hierarchical` over all PEs."""
    total = np.add.reduce(
        [_drawn(case.seed or 0, rank, shape) for rank in range(sips)], dtype=np.int32
    )
    if case.algorithm == "hierarchical":
        of_pes = np.add.reduce(total.reshape(-1, case.elements), dtype=np.int32)
        return np.broadcast_to(np.tile(of_pes, case.pes), shape)
    return (
        np.broadcast_to(np.add.reduce(total, dtype=np.int32), shape)
        if case.algorithm == "intercube"
        else total
    )
