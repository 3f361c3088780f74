"""Small programs that call the kernels, collectives and benches which ship."""

from collections.abc import Callable
from functools import partial
from typing import Any

from examples import fused_gemm, pytorch_pipeline, pytorch_point_to_point
from examples.kernels import gemv
from kernbench.benches.attention.layer import AttentionLayer, PeGrid
from kernbench.benches.attention.queues import with_hypercube
from kernbench.benches.collective_perf.collective import COLLECTIVES, Collective
from kernbench.benches.collective_perf.program import collective_perf
from kernbench.benches.tp_attention_block import tp_attention_block
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from kernbench.studies.ccl_algorithms.rows import algorithms
from kernbench.studies.llama70b_layer.program import layer_program
from kernbench.studies.llama70b_layer.study import SCALED_CUBES, SCALED_DOWN, prefill_of
from kernbench.studies.llama70b_layer.weights import random_inputs, random_weights
from kernbench.studies.milestone_gqa_llama70b.headline import HeadlineStudy
from kernbench.studies.milestone_gqa_llama70b.headline_rows import HeadlinePoint
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel
from kernbench.studies.milestone_gqa_llama70b.validation import (
    ValidationConfig,
    ValidationPoint,
    ValidationStudy,
)
from runtime import DPPolicy, torch
from runtime.ccl.config import parse_checked_ccl
from runtime.core.config.config_file import default_file
from tests.golden.cases import CASES
from tests.support.checked import CUBE, TWO_CUBES
from tests.support.topologies import variant_text

dist = torch.distributed
Program = Callable[[], object]
RANKS = (2, 3, 4, 5)
LARGE = (
    ("alltoall", "pairwise", 3, 700_000),
    ("all_reduce", "halving_doubling", 8, 4000),
    ("all_reduce", "tree", 3, 3_000_000),
)
_STAR = """
  star:
    module: examples.own_algorithm
    topology: examples.own_algorithm:star
    mapper: all_pes
    validator: any_placement
  ring:"""
_TOPOLOGY, _CCL = (default_file(name).read_text("utf-8") for name in ("topology.yaml", "ccl.yaml"))

_GRID = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
    system__sips__topology="torus_2d",
)


def simulated(program: Callable[[int], object], sips: int, **options: Any) -> Simulation:
    """`simulate`, by the name that it has in this module when the program runs."""
    return simulate(program, sips, **options)


def collectives(min_bytes: int = 40, max_bytes: int = 70_000) -> dict[str, Program]:
    """Every collective by every algorithm that has it, of sizes that do not divide."""
    ccl, programs = parse_checked_ccl(_CCL, "ccl.yaml"), dict[str, Program]()
    sizes = min_bytes, max_bytes
    for each in COLLECTIVES.values():
        for algorithm in algorithms(ccl, CUBE, each.call) if each.call else ("",):
            for ranks in RANKS:
                name = f"{each.name} {algorithm} on {ranks} ranks"
                programs[name] = _collective(each, algorithm, ranks, sizes)
    # More messages than buffers, and an all-gather in which some messages leave their slots.
    for name, algorithm, ranks, nbytes in LARGE:
        large = _collective(COLLECTIVES[name], algorithm, ranks, (nbytes, nbytes))
        programs[f"{name} {algorithm} of {nbytes} bytes on {ranks} ranks"] = large
    for ranks in RANKS:
        for count in (7, 70_001):
            programs[f"transfers of {count} elements on {ranks} ranks"] = partial(
                simulated, partial(_transfers, count=count), ranks, topology=CUBE
            )
    return programs


def _collective(
    collective: Collective, algorithm: str, ranks: int, sizes: tuple[int, int]
) -> Program:
    """A bench of a collective, from the least to the most bytes."""
    flags: dict[str, Any] = {
        "collective": collective.name,
        "min_bytes": sizes[0],
        "max_bytes": sizes[1],
        "step_bytes": 0,
        "step_factor": 13,
        "iters": 1,
        "warmup": 0,
        "check": 1,
        "op": "sum" if collective.reduces else "none",
        "dtype": "float",
        "root": -1,
        "algorithm": algorithm,
        "cubes": "0",
        "pes": 3,
    }
    topology = TWO_CUBES if ranks % 2 else CUBE
    return partial(simulated, partial(collective_perf, **flags), ranks, topology=topology)


def _transfers(_rank: int, count: int) -> None:
    """The calls that nccl-tests does not have."""
    dist.init_process_group("ahbm", algorithm="ring")
    rank, size = dist.get_rank(), dist.get_world_size()
    own, parts = torch.full((count,), rank + 1.0), [torch.zeros(count) for _ in range(size)]
    for root in range(size):
        dist.gather(own, parts if rank == root else None, dst=root)
        dist.scatter(own, parts if rank == root else None, src=root)
    dist.all_gather(parts, own)
    if rank == 0:
        dist.send(own, 1)
    elif rank == 1:
        dist.recv(own, 0)


def benches() -> dict[str, Program]:
    """Benches and examples whose digests are stored, rings of PEs, and a decoder layer."""
    programs: dict[str, Program] = {
        name: partial(simulated, case.program, case.sips, topology=variant_text(**case.changes))
        for name, case in CASES.items()
    }
    for panel in AttentionPanel:
        point = ValidationPoint(
            topology=TopologyFile.of(_TOPOLOGY).on_a_ring(1).text,
            ccl=_CCL,
            panel=panel,
            config=ValidationConfig(),
        )
        programs[f"ring attention, {panel}"] = partial(ValidationStudy().measure, point)
    small = TopologyFile.of(_TOPOLOGY).with_values({"sip.cube_mesh": SCALED_CUBES}).text
    for shape in (SCALED_DOWN, prefill_of(SCALED_DOWN, 64)):
        data = random_weights(shape), random_inputs(shape)
        programs[f"decoder layer, {shape.tokens} tokens"] = partial(
            simulated,
            layer_program(shape, 2, data),
            2,
            topology=TopologyFile.of(small).on_a_ring(2).text,
            ccl=with_hypercube(_CCL),
        )
    for algorithm in ("intercube", "hierarchical", "torus", "halving_doubling", "ring"):
        # Larger than a message: as pipelines.
        programs[f"all-reduce of many elements, {algorithm}"] = partial(
            simulated, partial(_all_reduce, algorithm), 4, topology=_GRID
        )
    programs["all-reduce through a cube in the middle"] = partial(
        simulated,
        partial(_all_reduce, "intercube", rows=9, columns=100),
        2,
        topology=variant_text(sip__cube_mesh={"w": 3, "h": 3}),
        ccl=_CCL.replace("root_cube: null", "root_cube: 4"),
    )
    programs["decode on parts of the keys"] = partial(
        HeadlineStudy().measure, _headline(AttentionPanel.SINGLE_USER_DECODE)
    )
    for example in (pytorch_pipeline, pytorch_point_to_point):
        # In a ring of two ranks, messages order what the wait for a send orders in larger ones.
        programs[example.__name__] = partial(simulated, lambda _, run=example.main: run(), 3)
    programs["tp-attention-block"] = partial(simulated, tp_attention_block, 2)
    programs["all-reduce of an example"] = partial(
        simulated,
        partial(_all_reduce, "star"),
        3,
        topology=CUBE,
        ccl=_CCL.replace("\n  ring:", _STAR),
    )
    programs["fused product"] = partial(simulated, lambda _: fused_gemm.run(1, 2), 1)
    programs["gemv"] = partial(simulated, lambda _: gemv.run(2, 4, 64, 256), 1)
    return programs


def _all_reduce(algorithm: str, _rank: int, rows: int = 0, columns: int = 60_001) -> None:
    dist.init_process_group("ahbm", algorithm=algorithm)
    one = algorithm in ("intercube", "halving_doubling", "ring", "star")
    spread = DPPolicy(cube="row_wise", pe="row_wise", num_pes=1 if one else None)
    dist.all_reduce(torch.zeros(rows or (2 if one else 4), columns, dp=spread))


def _headline(panel: AttentionPanel) -> HeadlinePoint:
    """A layer with two heads a group, on two SIPs of one cube."""
    machine = TopologyFile.of(_TOPOLOGY).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
    return HeadlinePoint(
        topology=machine.on_a_ring(2).text,
        ccl=with_hypercube(_CCL),
        panel=panel,
        layer=AttentionLayer(heads=4, kv_heads=2, depth=128, batch=1, tokens=512),
        sips=2,
        grid=PeGrid(1, 8),
    )
