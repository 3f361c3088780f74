"""Matrix products on the only PE of a chip, with all their records."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kernbench.simulation import Simulation, simulate
from runtime import tl, torch
from runtime.core.dtypes import DType, float16, int8
from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import accumulator_type
from runtime.model.blocked_layout import blocked_row_major
from runtime.model.tiles import TilePlan
from runtime.model.topology import Topology, parse_topology
from tests.support.topologies import SOURCE, variant_text

Operands = tuple[tuple[Any, Any], dict[str, Any]]

ONE_PE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__corners": ["NW"],
    "cube__pe_layout__pe_per_corner": 1,
}


class Product(NamedTuple):
    """`activation(acc + a @ b + bias)`.

    Staged operands are loaded first; the result goes to memory, or to TCM and then to memory.
    """

    m: int
    k: int
    n: int
    dtype: DType = float16
    result: DType | None = None
    stage_a: bool = False
    stage_b: bool = False
    stage_result: bool = False
    blocked: bool = True
    acc: bool = False
    bias: DType | None = None
    activation: str | None = None

    @property
    def out_dtype(self) -> DType:
        return self.result or (self.dtype if self.dtype != int8 else accumulator_type(self.dtype))

    def staged(self) -> "Product":
        """The same with all matrices in TCM."""
        return self._replace(stage_a=True, stage_b=True, stage_result=True)

    def arrays(self) -> dict[str, np.ndarray]:
        """Elements so small that sums in f16 do not overflow."""
        rng = np.random.default_rng(0)
        sums = accumulator_type(self.dtype)
        return {
            "a": _elements(rng, (self.m, self.k), self.dtype),
            "b": _elements(rng, (self.k, self.n), self.dtype),
            "acc": _elements(rng, (self.m, self.n), sums),
            "bias": _elements(rng, (self.n,), self.bias or sums),
        }

    def plan(self, topology: Topology) -> TilePlan:
        return TilePlan(self.m, self.k, self.n, topology.tile)

    def operand_bytes(self, plan: TilePlan) -> tuple[int, int]:
        """Bytes of all tiles of each operand that the steps fetch."""
        columns, rows = -(-self.n // plan.tile.n), -(-self.m // plan.tile.m)
        return (
            self.m * self.k * columns * self.dtype.itemsize,
            self.k * self.n * rows * self.dtype.itemsize,
        )

    @property
    def result_bytes(self) -> int:
        return self.m * self.n * self.out_dtype.itemsize


@dataclass(frozen=True)
class Measured:
    """The result of a run. `kernel_ps` includes the loads and stores of staged operands."""

    world: Simulation
    topology: Topology
    results: list[np.ndarray] = field(default_factory=list[np.ndarray])
    kernel_ps: int = 0

    @property
    def counters(self) -> dict[str, int]:
        return self.world.done.sips[0].counters

    @property
    def stalls(self) -> dict[str, int]:
        return {
            reason: self.counters[f"gemm_stall_{reason}_ps"] for reason in ("dma", "fetch", "store")
        }

    @cached_property
    def records(self) -> list[OpRecord]:
        return self.world.records[0]

    def of(self, engine: str, name: str = "") -> list[OpRecord]:
        return [record for _, record in self.world.of(engine, name)]

    @property
    def span_ps(self) -> int:
        """The time from the start of the first fetch to the end of the last store."""
        return span_ps(self.of("pe_fetch_store"))


def operands(record: OpRecord) -> list[Operand]:
    """The blocks that an operation reads."""
    return [each for each in record.inputs if isinstance(each, Operand)]


def span_ps(records: list[OpRecord]) -> int:
    return max(record.end_ps for record in records) - min(record.start_ps for record in records)


def measure(*products: Product, data: bool = False, **changes: Any) -> Measured:
    """Run all `products` in one kernel, in flight together; `changes` are to the topology file."""
    text = variant_text(**ONE_PE | {"pe__tcm__kernel_scratch_mb": 2} | changes)
    topology = parse_topology(text, SOURCE)
    world = simulate(lambda _rank: _program(products, topology), 1, topology=text, data=data)
    results, kernel_ps = world.returned[0]
    return Measured(world, topology, results, kernel_ps)


def _program(products: tuple[Product, ...], topology: Topology) -> tuple[list[np.ndarray], int]:
    tile = topology.tile
    tensors: list[dict[str, Any]] = []
    for product in products:
        arrays = product.arrays()
        a = blocked_row_major(tile.m, tile.k) if product.blocked and not product.stage_a else None
        b = blocked_row_major(tile.k, tile.n) if product.blocked and not product.stage_b else None
        out = (
            blocked_row_major(tile.m, tile.n)
            if product.blocked and not product.stage_result
            else None
        )
        tensors.append(
            {
                "a": torch.from_numpy(arrays["a"], layout=a),
                "b": torch.from_numpy(arrays["b"], layout=b),
                "acc": torch.from_numpy(arrays["acc"]),
                "bias": torch.from_numpy(arrays["bias"]),
                "out": torch.empty(product.m, product.n, dtype=product.out_dtype, layout=out),
            }
        )
    passed = [tensor for named in tensors for tensor in named.values()]
    handle = torch.launch("products", _kernel, products, *passed)
    torch.ahbm.synchronize()
    return [named["out"].numpy() for named in tensors], handle.pe_exec_ps


def _kernel(products: tuple[Product, ...], *pointers: tl.Pointer) -> None:
    begun: list[Callable[[], None]] = []
    loaded: dict[Product, Operands] = {}
    for index, product in enumerate(products):
        *operands, out = pointers[5 * index : 5 * index + 5]
        # Equal products have equal elements: a staged operand is loaded once.
        loaded[product] = loaded.get(product) or _load(product, *operands)
        begun.append(_begin(product, loaded[product], out))
    for finish in begun:
        finish()


def _load(
    product: Product, a: tl.Pointer, b: tl.Pointer, acc: tl.Pointer, bias: tl.Pointer
) -> Operands:
    m, k, n, blocked = product.m, product.k, product.n, product.blocked
    left = tl.load(a, (m, k)) if product.stage_a else tl.ref(a, (m, k), blocked=blocked)
    right = tl.load(b, (k, n)) if product.stage_b else tl.ref(b, (k, n), blocked=blocked)
    start = tl.load(acc, (m, n)) if product.acc else None
    row = tl.load(bias, (n,)) if product.bias else None
    return (left, right), {"acc": start, "bias": row, "activation": product.activation}


def _begin(product: Product, operands: Operands, out: tl.Pointer) -> Callable[[], None]:
    matrices, options = operands
    if not product.stage_result:
        target = tl.ref(out, (product.m, product.n), blocked=product.blocked)
        pending = tl.composite("gemm", *matrices, target, **options)
        return lambda: tl.wait(pending)
    pending = tl.composite("gemm", *matrices, out_dtype=product.out_dtype, **options)
    return lambda: tl.store(out, tl.wait(pending))


def _elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype.is_floating_point:
        return (rng.standard_normal(shape) / 4).astype(dtype.numpy)
    return rng.integers(-100, 100, shape).astype(dtype.numpy)
