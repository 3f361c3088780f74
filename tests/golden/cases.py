"""The runs whose op-log digests are stored, each with every SIP in the test's own process."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordinator.report.aggregate import run_digest
from examples import overlap, softmax
from kernbench import DPPolicy, torch
from kernbench.benches.ccl_allreduce import ccl_allreduce
from kernbench.benches.congestion import congestion
from kernbench.benches.gemm_single_pe import gemm_single_pe
from kernbench.benches.ipcq_allreduce import ipcq_allreduce
from kernbench.benches.qkv_gemm import qkv_gemm
from kernbench.benches.tp_mlp import tp_mlp
from kernbench.benches.va_offset_verify import va_offset_verify
from tests.support.topologies import variant_text
from tests.support.world import simulate

TWO_PES = {
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW", "SE"],
}
ONE_CUBE = TWO_PES | {"sip__cube_mesh": {"w": 1, "h": 1}}
TWO_BY_TWO_CUBES = TWO_PES | {"sip__cube_mesh": {"w": 2, "h": 2}}


@dataclass(frozen=True)
class Golden:
    """The stored values of a run: the digest of op log and memories, and the time of its end."""

    digest: str
    time_ps: int


@dataclass(frozen=True)
class GoldenCase:
    """`program(rank)` on `sips` SIPs; `changes` replaces keys of the default topology file."""

    program: Callable[[int], object]
    sips: int
    changes: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self) -> Golden:
        """Simulate in one LP; `launch.py` prints the first 16 digits of the digest."""
        world = simulate(self.program, self.sips, topology=variant_text(**self.changes))
        return Golden(run_digest(world.done.sips), world.time_ps)


def _all_reduce(algorithm: str) -> GoldenCase:
    """4 KiB and 32 KiB a shard over 4 SIPs of one cube: slots are reused, and credits matter."""
    sizes: dict[str, Any] = {"min_bytes": 4096, "max_bytes": 32768, "factor": 8}
    return GoldenCase(partial(ccl_allreduce, algorithm=algorithm, **sizes), 4, ONE_CUBE)


def _all_reduce_on_all_pes(rank: int) -> None:
    """About 96 KiB on 8 PEs, which begin in both dimensions and directions; odd chunks."""
    torch.distributed.init_process_group("ahbm", algorithm="torus")
    spread = DPPolicy(cube="column_wise", pe="column_wise")
    torch.distributed.all_reduce(torch.full((8 * 3073,), rank + 1.0, dp=spread))


_small_all_reduce = partial(ccl_allreduce, min_bytes=256, max_bytes=256)

CASES: dict[str, GoldenCase] = {
    "default bench, 1 SIP": GoldenCase(ccl_allreduce, 1),
    "default bench, 2 SIPs": GoldenCase(ccl_allreduce, 2),
    "default bench up to 256 B, 3 SIPs": GoldenCase(_small_all_reduce, 3),
    "all-reduce, ring": _all_reduce("ring"),
    "all-reduce, mesh": _all_reduce("mesh"),
    "all-reduce, tree": _all_reduce("tree"),
    "all-reduce, halving_doubling": _all_reduce("halving_doubling"),
    "all-reduce, torus": GoldenCase(
        _all_reduce_on_all_pes, 4, TWO_BY_TWO_CUBES | {"system__sips__topology": "torus_2d"}
    ),
    "all-reduce, hierarchical": GoldenCase(
        partial(_small_all_reduce, algorithm="hierarchical"), 2, TWO_BY_TWO_CUBES
    ),
    "all-reduce through a switch": GoldenCase(
        partial(_small_all_reduce, algorithm="ring"),
        3,
        ONE_CUBE | {"system__sips__fabric": "switch"},
    ),
    "all-reduce on a torus of 4": GoldenCase(
        _small_all_reduce, 4, TWO_BY_TWO_CUBES | {"system__sips__topology": "torus_2d"}
    ),
    "all-reduce on a mesh of 4 that does not wrap": GoldenCase(
        partial(_small_all_reduce, algorithm="ring"),
        4,
        ONE_CUBE | {"system__sips__topology": "mesh_2d_no_wrap"},
    ),
    "all-reduce on SIPs of 2 x 3 cubes": GoldenCase(
        _small_all_reduce, 2, {"sip__cube_mesh": {"w": 2, "h": 3}}
    ),
    "all-reduce over a ring of 4 with routers with credits": GoldenCase(
        _small_all_reduce, 4, TWO_BY_TWO_CUBES | {"noc__flow_control": "credits"}
    ),
    "congestion with routers with credits": GoldenCase(
        congestion, 1, TWO_BY_TWO_CUBES | {"noc__flow_control": "credits"}
    ),
    "congestion with banks of HBM": GoldenCase(
        congestion, 1, TWO_BY_TWO_CUBES | {"hbm__model": "banks"}
    ),
    "gemm-single-pe": GoldenCase(
        partial(gemm_single_pe, m=48, n=40, k=100, bias=True, activation="gelu"), 1
    ),
    "qkv-gemm": GoldenCase(partial(qkv_gemm, scale=128, seq=20, pes=2), 1),
    "congestion": GoldenCase(congestion, 2, TWO_BY_TWO_CUBES),
    "tp-mlp": GoldenCase(partial(tp_mlp, tokens=20, width=96, hidden=160), 2, TWO_BY_TWO_CUBES),
    "ipcq-allreduce": GoldenCase(
        partial(ipcq_allreduce, elements=9000, dtype="float16", cubes=2), 3, TWO_BY_TWO_CUBES
    ),
    "va-offset-verify": GoldenCase(partial(va_offset_verify, columns=100, cubes=2, pes=4), 2),
    "examples/softmax.py": GoldenCase(lambda rank: softmax.run(2, 8), 1),
    "examples/overlap.py": GoldenCase(lambda rank: overlap.run(), 2),
}
