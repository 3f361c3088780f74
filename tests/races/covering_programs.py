"""Small programs that call the kernels, collectives and benches which ship."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from examples.kernels import gemv
from kernbench.benches.attention.layer import AttentionLayer, PeGrid
from kernbench.benches.attention.queues import with_hypercube
from kernbench.benches.collective_perf.collective import COLLECTIVES
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
_TOPOLOGY, _CCL = (default_file(name).read_text("utf-8") for name in ("topology.yaml", "ccl.yaml"))

_GRID = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
    system__sips__topology="torus_2d",
)


def _simulated(program: Callable[[int], object], sips: int, **options: Any) -> Simulation:
    # By its name here, which who checks the simulations may give another value.
    return simulate(program, sips, **options)


def collectives(min_bytes: int = 40, max_bytes: int = 70_000) -> dict[str, Program]:
    """Every collective by every algorithm that has it, of sizes that do not divide."""
    ccl, programs = parse_checked_ccl(_CCL, "ccl.yaml"), dict[str, Program]()
    for each in COLLECTIVES.values():
        for algorithm in algorithms(ccl, CUBE, each.call) if each.call else ("",):
            for ranks in RANKS:
                flags: dict[str, Any] = {
                    "collective": each.name,
                    "min_bytes": min_bytes,
                    "max_bytes": max_bytes,
                    "step_bytes": 0,
                    "step_factor": 13,
                    "iters": 1,
                    "warmup": 0,
                    "check": 1,
                    "op": "sum" if each.reduces else "none",
                    "dtype": "float",
                    "root": -1,
                    "algorithm": algorithm,
                    "cubes": "0",
                    "pes": 3,
                }
                programs[f"{each.name} {algorithm} on {ranks} ranks"] = partial(
                    _simulated,
                    partial(collective_perf, **flags),
                    ranks,
                    topology=TWO_CUBES if ranks % 2 else CUBE,
                )
    for ranks in RANKS:
        for count in (7, 70_001):
            programs[f"transfers of {count} elements on {ranks} ranks"] = partial(
                _simulated, partial(_transfers, count=count), ranks, topology=CUBE
            )
    return programs


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
    """The runs whose digests are stored, attention on rings of PEs, and a decoder layer."""
    programs: dict[str, Program] = {
        name: partial(_simulated, case.program, case.sips, topology=variant_text(**case.changes))
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
            _simulated,
            layer_program(shape, 2, data),
            2,
            topology=TopologyFile.of(small).on_a_ring(2).text,
            ccl=with_hypercube(_CCL),
        )
    for algorithm in ("intercube", "hierarchical", "torus", "halving_doubling", "ring"):
        # Larger than a message: as pipelines.
        programs[f"all-reduce of many elements, {algorithm}"] = partial(
            _simulated, partial(_all_reduce, algorithm), 4, topology=_GRID
        )
    programs["decode on parts of the keys"] = partial(
        HeadlineStudy().measure, _headline(AttentionPanel.SINGLE_USER_DECODE)
    )
    programs["tp-attention-block"] = partial(_simulated, tp_attention_block, 2)
    programs["gemv"] = partial(_simulated, lambda _: gemv.run(2, 4, 64, 256), 1)
    return programs


OPERATORS = (
    "copy",
    "add",
    "softmax",
    "softmax of long rows",
    "layer norm",
    "layer norm of long rows",
    "sum of rows",
    "sum of all",
    "cross entropy",
    "cross entropy of many classes",
    "sort",
    "sort on the host",
    "top of many",
    "embedding",
    "index_add",
    "interpolate",
    "pool",
    "adaptive pool",
    "attention",
    "convolution",
    "cumsum",
    "product",
    "product in bfloat16",
    "product of one row",
    "product of a transposed operand",
    "product of deep operands",
    "large product",
    "products of a batch",
)


def _all_reduce(algorithm: str, _rank: int) -> None:
    dist.init_process_group("ahbm", algorithm=algorithm)
    one = algorithm in ("intercube", "halving_doubling", "ring")
    spread = DPPolicy(cube="row_wise", pe="row_wise", num_pes=1 if one else None)
    dist.all_reduce(torch.zeros(2 if one else 4, 60_001, dp=spread))


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


def of_pytorch() -> dict[str, Program]:
    """Operators of PyTorch, one in each program."""
    return {
        f"PyTorch: {name}": partial(_simulated, lambda _, name=name: operators()[name](), 1)
        for name in OPERATORS
    }


def operators() -> dict[str, Callable[[], object]]:
    """Operators by name; of the only rank that this process ever has."""
    import torch
    from torch.nn import functional

    from kernbench.torch_backend.connection import connect

    connect()

    def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1)
        return torch.randn(shape, generator=generator).to(dtype).to("ahbm")

    def classes(count: int, rows: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1)
        return torch.randint(0, count, (rows,), generator=generator).to("ahbm")

    def with_gradient(
        function: Callable[[Sequence[torch.Tensor]], torch.Tensor], *operands: torch.Tensor
    ) -> None:
        for each in operands:
            each.requires_grad_()
        torch.autograd.backward(function(operands).float().sum())

    half = torch.bfloat16
    return {
        "copy": lambda: drawn(64, 40).T.clone(memory_format=torch.contiguous_format),
        "add": lambda: drawn(64, 40) + drawn(64, 40),
        "softmax": lambda: with_gradient(
            lambda of: functional.softmax(of[0], -1) * drawn(20, 300), drawn(20, 300)
        ),
        "softmax of long rows": lambda: functional.softmax(drawn(3, 100_000), -1),
        "layer norm": lambda: with_gradient(
            lambda of: functional.layer_norm(of[0], (300,)), drawn(20, 300)
        ),
        "layer norm of long rows": lambda: functional.layer_norm(drawn(3, 100_000), (100_000,)),
        "sum of rows": lambda: drawn(200, 300).sum(0),
        "sum of all": lambda: drawn(200, 300).sum(),
        "cross entropy": lambda: with_gradient(
            lambda of: functional.cross_entropy(of[0], classes(500, 40)), drawn(40, 500)
        ),
        "cross entropy of many classes": lambda: with_gradient(
            lambda of: functional.cross_entropy(of[0], classes(50_000, 8)), drawn(8, 50_000)
        ),
        "sort": lambda: drawn(3, 500).sort(),
        "sort on the host": lambda: drawn(3, 5000).sort(),
        "top of many": lambda: drawn(3, 5000).topk(7),
        "embedding": lambda: with_gradient(
            lambda of: functional.embedding(classes(100, 50), of[0]), drawn(100, 64)
        ),
        "index_add": lambda: drawn(100, 64).index_add(0, classes(100, 50), drawn(50, 64)),
        "interpolate": lambda: functional.interpolate(
            drawn(2, 3, 20, 20), scale_factor=1.7, mode="bilinear"
        ),
        "pool": lambda: functional.avg_pool2d(drawn(2, 3, 20, 20), 3),
        "adaptive pool": lambda: functional.adaptive_avg_pool2d(drawn(2, 3, 20, 20), 7),
        "attention": lambda: with_gradient(
            lambda of: functional.scaled_dot_product_attention(of[0], of[1], of[2], is_causal=True),
            *(drawn(1, 4, 100, 64, dtype=half) for _ in range(3)),
        ),
        "convolution": lambda: functional.conv2d(drawn(2, 3, 20, 20), drawn(8, 3, 3, 3)),
        "cumsum": lambda: drawn(3, 5000).cumsum(-1),
        "product": lambda: drawn(33, 1000) @ drawn(1000, 257),
        "product in bfloat16": lambda: drawn(33, 1000, dtype=half) @ drawn(1000, 257, dtype=half),
        "product of one row": lambda: drawn(1, 1024, dtype=half) @ drawn(1024, 1024, dtype=half),
        "product of a transposed operand": lambda: functional.linear(
            drawn(300, 512, dtype=half), drawn(300, 512, dtype=half), drawn(300, dtype=half)
        ),
        "product of deep operands": lambda: (
            drawn(16, 20_000, dtype=half) @ drawn(20_000, 64, dtype=half)
        ),
        "large product": lambda: drawn(1024, 1024, dtype=half) @ drawn(1024, 1024, dtype=half),
        "products of a batch": lambda: drawn(8, 33, 100) @ drawn(8, 100, 50),
    }
