"""Group v: times of the vector engine, by function, type, size and bandwidth of the ports.

A kernel makes the operands, then executes one operation. The time between the end of the last
operand and the end of the operation is the issue of one command and the time of the operation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from math import prod

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.engines.vector_engine import REDUCTIONS, Elements, VectorEngine
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.dtypes import DType, boolean, float16, float32, float64, int8, int32, int64
from runtime.device.launches.launch import launch_on
from runtime.language.context import running_kernel
from runtime.language.running import NO_OPTIONS, MathOptions

UNARY = (
    *("abs", "relu", "floor", "ceil", "round", "exp", "exp2", "log", "log2", "sqrt", "rsqrt"),
    *("sin", "cos", "tanh", "erf", "sigmoid", "gelu", "silu"),
)
BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum")
TERNARY = ("fma", "clamp")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
TYPES = (int8, float16, float32, int64, float64)
LONG = 256
"""Vectors of the long operations: 128 KiB of float32 with 128 lanes."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class VectorCase:
    """One operation: operands of one type, and the shape and type of the result.

    The first operand may have a type of its own, `first`; without operands there are `numbers`.
    """

    id: str
    name: str
    operands: tuple[Shape, ...]
    result: Shape
    dtype: DType = float32
    result_dtype: DType = float32
    options: MathOptions = NO_OPTIONS
    first: DType | None = None
    numbers: tuple[int, ...] = (1,)

    def __str__(self) -> str:
        shapes = ", ".join(" x ".join(map(str, shape)) for shape in self.operands)
        return f"{self.name} of {shapes or 'nothing'} {self.dtype.name}"

    @property
    def nbytes(self) -> int:
        """Bytes of all operands and of the result."""
        blocks = (*self.blocks, Elements(prod(self.result), self.result_dtype.itemsize))
        return sum(block.nbytes for block in blocks)

    @property
    def made(self) -> tuple[Shape, ...]:
        """The shapes that the kernel makes first; one even if the operation has no operand."""
        return self.operands or ((1,),)

    @property
    def blocks(self) -> tuple[Elements, ...]:
        """The operands."""
        sized = zip(self.operands, self._types(), strict=False)
        return tuple(Elements(prod(shape), dtype.itemsize) for shape, dtype in sized)

    def kernel(self) -> None:
        """Make the operands, then execute the operation."""
        context = running_kernel()
        made = zip(self.made, self._types(), strict=False)
        values = [
            context.math("full", (1,), MathOptions(dtype=dtype, shape=shape))
            for shape, dtype in made
        ]
        context.math(self.name, values if self.operands else self.numbers, self.options)

    def expected_ps(self, engine: VectorEngine) -> int:
        """The time of the operation without the issue of its command."""
        result = Elements(prod(self.result), self.result_dtype.itemsize)
        match self.name:
            case "softmax":
                return engine.softmax_ps(result, result.count // self.result[-1])
            case "cumsum":
                return engine.running_sum_ps(self.blocks[0], result)
            case name if name in REDUCTIONS:
                return engine.reduction_ps(name, self.blocks[0], result)
            case "cat":
                return engine.elementwise_ps("cat", [result], result)
            case name:
                return engine.elementwise_ps(_function(name), self.blocks, result)

    def _types(self) -> Iterator[DType]:
        """The types of the operands."""
        yield self.first or self.dtype
        yield from repeat(self.dtype)


def by_function(file: TopologyFile) -> list[Check]:
    """Every operation on five vectors and one element, also with cycles of its own."""
    cases = _operations(file)
    costs: dict[str, int] = file["pe.math.cycles"]
    other = file.with_values(
        {f"pe.math.cycles.{name}": 3 + number for number, name in enumerate(costs)}
    )
    wrong = sum(not check.passed for check in _checks(other, "", "", cases))
    return [
        *_checks(file, "v.function", "", cases),
        Check(
            id="v.cost",
            text="each function with cycles of its own: operations with another time",
            formula="the cycles of an operation are those of its function",
            expected=0,
            measured=wrong,
            unit="operations",
        ),
    ]


def _operations(file: TopologyFile) -> list[VectorCase]:
    size = (5 * file["pe.math.lanes"] + 1,)
    same = [
        *((name, 1, float32) for name in UNARY),
        *((name, 2, float32) for name in BINARY),
        *((name, 3, float32) for name in TERNARY),
        *((name, 2, int32) for name in BITWISE),
    ]
    return [
        *(
            VectorCase(name, name, (size,) * count, size, dtype, dtype)
            for name, count, dtype in same
        ),
        *(VectorCase(name, name, (size,) * 2, size, result_dtype=boolean) for name in COMPARISONS),
        *(VectorCase(name, name, (size,), (), result_dtype=_reduced(name)) for name in REDUCTIONS),
        VectorCase("cumsum", "cumsum", (size,), size, options=MathOptions(axis=0)),
        VectorCase("where", "where", (size,) * 3, size, first=boolean),
        _range("arange", size),
        VectorCase("softmax", "softmax", (size,), size, options=MathOptions(axis=0)),
        VectorCase("trans", "trans", ((3, size[0]),), (size[0], 3)),
        VectorCase("cat", "cat", ((size[0] - 7,), (7,), size), (2 * size[0],)),
        _constant("full", size),
        _cast("cast", size, float32, float16),
        VectorCase("bitcast", "bitcast", (size,), size, float32, int32, MathOptions(dtype=int32)),
    ]


def by_size(file: TopologyFile) -> list[Check]:
    """An addition in types of 1 to 8 bytes: one element, one vector, one more, ten vectors."""
    lanes = file["pe.math.lanes"]
    cases = [
        VectorCase(f"{dtype.name}.{count}", "add", ((count,),) * 2, (count,), dtype, dtype)
        for dtype in TYPES
        for count in (1, lanes, lanes + 1, 10 * lanes)
    ]
    return _checks(file, "v.size", "", cases)


def by_bound(file: TopologyFile) -> list[Check]:
    """Streams that the fetch, the engine or the store bounds, with ports of several bandwidths."""
    variants = {
        "file": ("", file),
        "slow": ("ports at 1/4: ", _with_ports(file, 1 / 4)),
        "fast": ("ports at 4: ", _with_ports(file, 4)),
    }
    return [
        check
        for name, (title, variant) in variants.items()
        for check in streams_on(variant, f"v.bound.{name}", title)
    ]


def streams_on(file: TopologyFile, prefix: str, title: str) -> list[Check]:
    """Streams on one topology, with ids that start with `prefix`."""
    return _checks(file, prefix, title, list(_streams(file)))


def _streams(file: TopologyFile) -> Iterator[VectorCase]:
    lanes: int = file["pe.math.lanes"]
    size, part = (LONG * lanes,), 3 * lanes - lanes // 2
    yield VectorCase("add", "add", (size, size), size)
    yield VectorCase("exp", "exp", (size,), size)
    yield _constant("full", size)
    yield _cast("cast", size, int8, float64)
    yield VectorCase("fma", "fma", ((part,),) * 3, (part,))
    # The row ends with its third vector, and so does the wait for two operands.
    row, rows = (1, part), (8, part)
    yield VectorCase("repeated", "maximum", (row, rows), rows)
    yield VectorCase("spread", "mul", ((8, 1), rows), rows)
    yield VectorCase("sum", "sum", (rows,), (8,), options=MathOptions(axis=1))
    yield VectorCase("max", "max", (size,), ())
    yield VectorCase("sum-i8", "sum", (size,), (), dtype=int8, result_dtype=int32)
    yield VectorCase(
        "argmax", "argmax", (rows,), (8,), result_dtype=int32, options=MathOptions(axis=1)
    )
    yield VectorCase("cumsum", "cumsum", (rows,), rows, options=MathOptions(axis=1))
    yield VectorCase("cumsum-i8", "cumsum", (rows,), rows, int8, int32, options=MathOptions(axis=0))
    yield VectorCase("where", "where", (rows, (8, 1), row), rows, first=boolean)
    yield VectorCase("softmax", "softmax", (rows,), rows, options=MathOptions(axis=1))
    narrow = (5 * lanes + 1, 3)
    yield VectorCase("softmax-of-rows", "softmax", (narrow,), narrow, options=MathOptions(axis=1))
    yield VectorCase("cat", "cat", ((part,), (3 * lanes,), (7,)), (part + 3 * lanes + 7,))


def _with_ports(file: TopologyFile, factor: float) -> TopologyFile:
    key = "pe.fetch_store.bw_gbs"
    return file.with_values({key: float(file.number(key)) * factor})


def _constant(name: str, shape: Shape) -> VectorCase:
    return VectorCase(name, "full", (), shape, options=MathOptions(dtype=float32, shape=shape))


def _range(name: str, shape: Shape) -> VectorCase:
    return VectorCase(
        name,
        "arange",
        (),
        shape,
        int32,
        int32,
        options=MathOptions(dtype=int32),
        numbers=(0, prod(shape)),
    )


def _cast(name: str, shape: Shape, dtype: DType, other: DType) -> VectorCase:
    return VectorCase(name, "cast", (shape,), shape, dtype, other, MathOptions(dtype=other))


def _reduced(name: str) -> DType:
    return int32 if name in ("argmax", "argmin") else float32


def _function(name: str) -> str:
    if name in COMPARISONS:
        return "compare"
    if name == "bitcast":
        return "cast"
    return "bitwise" if name in BITWISE else name


def _checks(
    file: TopologyFile, prefix: str, title: str, cases: Sequence[VectorCase]
) -> list[Check]:
    # A kernel whose values do not fit in its scratch has no time.
    room = file["pe.tcm.kernel_scratch_mb"] << 20
    kept = [case for case in cases if case.nbytes + 64 * (len(case.operands) + 1) <= room]
    engine = VectorEngine(file)
    issue_ps = FixedTimes(file).issue_ps
    measured = _measured_ps(file, kept)
    return [
        Check(
            id=f"{prefix}.{case.id}",
            text=f"{title}{case}",
            formula=_formula(case),
            expected=case.expected_ps(engine) + issue_ps,
            measured=took_ps,
            unit="ps",
        )
        for case, took_ps in zip(kept, measured, strict=True)
    ]


def _formula(case: VectorCase) -> str:
    if case.name == "softmax":
        return "issue + three passes, two trees, a quotient for each vector of rows"
    if case.name in REDUCTIONS:
        return "issue + fetch, engine; then tree, then store"
    return "issue + longest path: fetch, engine, store"


def _measured_ps(file: TopologyFile, cases: Sequence[VectorCase]) -> list[int]:
    """Each case in a launch of its own, one after the other, on PE 0 of a SIP."""

    def program(_rank: int) -> None:
        for case in cases:
            launch_on(case.id, case.kernel, (), [], [(0, 0)])

    world = simulate(program, 1, topology=file.text, data=False)
    ends = iter([record.end_ps for _, record in world.of("pe_math")])
    times_ps: list[int] = []
    for case in cases:
        *_, before_ps, end_ps = islice(ends, len(case.made) + 1)
        times_ps.append(end_ps - before_ps)
    return times_ps
