"""Group v: operations of the vector engine that meet a matrix product, and its epilogues.

A kernel queues a product of operands in TCM, then executes operations. The product is fetched at
once, at t; the first operation begins when its command has been issued. Fetch port, store port and
vector engine serve the product and the operations in the order in which they arrive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.engines.gemm import GemmNumbers
from kernbench.oracle.theory.engines.vector_engine import Elements, VectorEngine
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.dtypes import float16
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.language import tl
from runtime.language.value import Value

M, K, N = 32, 64, 32
LANES = 128
VALUES: dict[str, Any] = {
    "pe.cpu.overhead_ns": 2.0,
    "pe.scheduler.overhead_ns": 1.0,
    "pe.fetch_store.bw_gbs": 512,
    "pe.tile": {"m": M, "k": K, "n": N},
    "pe.gemm.model": "macs",
    "pe.gemm.clock_ghz": 1.0,
    "pe.gemm.macs_per_cycle": 4096,
    "pe.math.lanes": LANES,
    "pe.math.clock_ghz": 1.0,
    "pe.math.pipeline_cycles": 4,
    "pe.math.cycles.add": 1,
    "pe.math.cycles.full": 1,
    "pe.math.cycles.exp": 8,
    "pe.math.cycles.sqrt": 16,
    "pe.math.cycles.gelu": 8,
}
"""A step of a product takes 16 ns at the fetch port, 16 in the engine, its result 8 to store."""


@dataclass(frozen=True)
class _Records:
    """The op log of a run."""

    all: list[OpRecord]

    def of(self, engine: str, name: str) -> list[OpRecord]:
        return [each for each in self.all if (each.engine, each.name) == (engine, name)]

    @property
    def fetches_ps(self) -> list[int]:
        return [each.start_ps for each in self.of("pe_fetch_store", "fetch")]

    @property
    def begin_ps(self) -> int:
        return self.fetches_ps[0]


def meetings(file: TopologyFile) -> list[Check]:
    """An operation behind a product, and the reverse, at each port and in the engine."""
    return _Meetings(file.with_values(VALUES)).checks()


class _Meetings:
    """The checks, each a run with numbers of its own, in picoseconds from t on."""

    def __init__(self, file: TopologyFile) -> None:
        self._file, self._engine = file, VectorEngine(file)
        numbers = GemmNumbers.of(file)
        self._fetch_ps, self._step_ps = numbers.fetch_ps(float16.itemsize), numbers.tile_ps()
        self._sums = Elements(M * N)

    def checks(self) -> list[Check]:
        """All of them."""
        return [
            *self.at_the_fetch_port(),
            self.tile_behind_results(),
            self.result_behind_tile(),
            self.epilogue_behind_operation(),
            self.operation_behind_epilogue(),
        ]

    def at_the_fetch_port(self) -> list[Check]:
        """An addition comes behind the first step of a product, and before the second."""
        operand = Elements(4 * LANES)

        def kernel(a: Value, b: Value, x: Value) -> None:
            pending = tl.composite("gemm", a, b)
            _ = x + x
            tl.wait(pending)

        records = self._run(kernel, 2 * K, operand.count)
        (added,) = records.of("pe_math", "add")
        add_ps = self._engine.elementwise_ps("add", [operand] * 2, operand)
        return [
            self._check(
                "fetch",
                "an addition behind the fetch of a product's first step: its end",
                "fetch of A and B + addition",
                self._fetch_ps + add_ps,
                added.end_ps - records.begin_ps,
            ),
            self._check(
                "tiles",
                "the second step of the product behind the operands of the addition: its fetch",
                "fetch of A and B + operands",
                self._fetch_ps + self._port_ps(2 * operand.nbytes),
                records.fetches_ps[2] - records.begin_ps,
            ),
        ]

    def tile_behind_results(self) -> Check:
        """A tile is complete after the first result of a long operation, and before the last."""
        operand = Elements(64 * LANES)

        def kernel(a: Value, b: Value, x: Value) -> None:
            pending = tl.composite("gemm", a, b)
            tl.exp(x)
            tl.wait(pending)

        records = self._run(kernel, K, operand.count)
        (stored,) = records.of("pe_fetch_store", "store")
        first_ps = self._fetch_ps + self._port_ps(LANES * 4) + self._computed_ps("exp", 1)
        return self._check(
            "store",
            "a tile behind the results of an exponential at the store port: its end",
            "first result + all results + tile",
            first_ps + self._port_ps(operand.nbytes) + self._port_ps(self._sums.nbytes),
            stored.end_ps - records.begin_ps,
        )

    def result_behind_tile(self) -> Check:
        """The result of one vector is there while a tile is stored."""

        def kernel(a: Value, b: Value, x: Value) -> None:
            pending = tl.composite("gemm", a, b)
            tl.sqrt(x)
            tl.wait(pending)

        records = self._run(kernel, K, LANES)
        (root,) = records.of("pe_math", "sqrt")
        tile_ps = self._fetch_ps + self._step_ps + self._port_ps(self._sums.nbytes)
        return self._check(
            "result",
            "a square root behind a tile at the store port: its end",
            "fetch + step + tile + result",
            tile_ps + self._port_ps(LANES * 4),
            root.end_ps - records.begin_ps,
        )

    def epilogue_behind_operation(self) -> Check:
        """A tile is complete while a long operation computes."""
        vectors = 64

        def kernel(a: Value, b: Value, x: Value) -> None:
            pending = tl.composite("gemm", a, b, activation="gelu")
            tl.exp(x)
            tl.wait(pending)

        records = self._run(kernel, K, vectors * LANES)
        (epilogue,) = records.of("pe_math", "gelu")
        before_ps = self._fetch_ps + self._port_ps(LANES * 4) + self._computed_ps("exp", vectors)
        return self._check(
            "epilogue",
            "an activation behind an exponential in the engine: its end",
            "fetch + exponential in the engine + activation",
            before_ps + self._engine.epilogue_ps("gelu", self._sums.count),
            epilogue.end_ps - records.begin_ps,
        )

    def operation_behind_epilogue(self) -> Check:
        """An addition begins while an activation computes."""
        # The constant is in TCM when the product is complete, 32 ns after t.
        constants = 24 * LANES

        def kernel(a: Value, b: Value, x: Value) -> None:
            pending = tl.composite("gemm", a, b, activation="gelu")
            tl.full((constants,), 1, tl.float32)
            _ = x + x
            tl.wait(pending)

        records = self._run(kernel, K, LANES)
        (added,) = records.of("pe_math", "add")
        epilogue_ps = self._engine.epilogue_ps("gelu", self._sums.count)
        return self._check(
            "operation",
            "an addition behind an activation in the engine: its start",
            "fetch + step + activation",
            self._fetch_ps + self._step_ps + epilogue_ps,
            added.start_ps - records.begin_ps,
        )

    def _run(
        self, kernel: Callable[[Value, Value, Value], None], depth: int, elements: int
    ) -> _Records:
        def prepared() -> None:
            kernel(
                tl.zeros((M, depth), tl.float16),
                tl.zeros((depth, N), tl.float16),
                tl.zeros((elements,), tl.float32),
            )

        return _logged(self._file, prepared)

    def _computed_ps(self, function: str, vectors: int) -> int:
        return ceil(self._engine.computed_ps(self._engine.cycles(function), vectors))

    def _port_ps(self, nbytes: int) -> int:
        return ceil(self._engine.port_ps(nbytes))

    def _check(self, name: str, text: str, formula: str, expected: int, measured: int) -> Check:
        return Check(
            id=f"v.meet.{name}",
            text=text,
            formula=formula,
            expected=expected,
            measured=measured,
            unit="ps",
        )


def epilogues(file: TopologyFile) -> list[Check]:
    """Bias and activation of one output tile of the file: no data is moved."""
    m, k, n = (file[f"pe.tile.{side}"] for side in "mkn")
    engine = VectorEngine(file)
    meetings: list[Check] = []
    for activation in ("relu", "gelu", "silu", "sigmoid", "tanh"):

        def kernel(function: str = activation) -> None:
            a, b = tl.zeros((m, k), tl.float16), tl.zeros((k, n), tl.float16)
            bias = tl.zeros((n,), tl.float32)
            tl.wait(tl.composite("gemm", a, b, bias=bias, activation=function))

        records = _logged(file, kernel)
        (step,), (last,) = records.of("pe_gemm", "gemm"), records.of("pe_math", activation)
        expected = engine.epilogue_ps("add", m * n) + engine.epilogue_ps(activation, m * n)
        meetings.append(
            Check(
                id=f"v.epilogue.{activation}",
                text=f"bias and {activation} of a tile of {m} x {n}",
                formula="twice the fill + vectors x cycles of each",
                expected=expected,
                measured=last.end_ps - step.end_ps,
                unit="ps",
            )
        )
    return meetings


def _logged(file: TopologyFile, kernel: Callable[[], None]) -> _Records:
    def program(_rank: int) -> None:
        launch_on("product", kernel, (), [], [(0, 0)])

    world = simulate(program, 1, topology=file.text, data=False)
    return _Records([record for records in world.records.values() for record in records])
