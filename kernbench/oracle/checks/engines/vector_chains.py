"""Group v: times of chains of the vector engine, pass by pass.

A kernel makes the operands, then runs one chain. The time from the end of the last operand to the
end of the kernel is the issue of one command and the time of the chain. The passes of every chain
are written down here by hand, from the rules of docs/internals/rules.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.engines.vector_chains import ChainTimes, PassWork
from kernbench.oracle.theory.engines.vector_engine import Elements
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.dtypes import DType, float16, float32, float64, int8, int32
from runtime.device.launches.launch import launch_on
from runtime.language import tl
from runtime.language.context import running_kernel
from runtime.language.running import MathOptions
from runtime.language.value import Value

ROWS = 6
Shape = tuple[int, ...]


@dataclass(frozen=True)
class ChainCase:
    """A function on values of some shapes and a type, and the passes that it makes."""

    id: str
    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    passes: tuple[PassWork, ...]
    dtype: DType = float32
    item_bytes: int = 4

    def kernel(self) -> None:
        """Make the operands, then run the chain."""
        context = running_kernel()
        values = [
            context.math("full", (1,), MathOptions(dtype=self.dtype, shape=each))
            for each in self.shapes
        ]
        tl.fused(self.function, *values)


def chains(file: TopologyFile) -> list[Check]:
    """Chains of all kinds, with ports of several bandwidths."""
    key = "pe.fetch_store.bw_gbs"
    variants = {
        "file": ("", file),
        "slow": ("ports at 1/4: ", file.with_values({key: float(file.number(key)) / 4})),
        "fast": ("ports at 4: ", file.with_values({key: float(file.number(key)) * 4})),
    }
    return [
        check
        for name, (title, variant) in variants.items()
        for check in chains_on(variant, f"v.chain.{name}", title)
    ]


def chains_in_flight(file: TopologyFile) -> list[Check]:
    """Four chains of one pass, queued before the first one ends."""
    size, count = 64 * file["pe.math.lanes"], 4
    one, times = Elements(size), ChainTimes(file)
    exp = PassWork([one], [("exp", size)], [one])
    add = PassWork([one, one], [("add", size)], [one])
    # The engine fills its pipeline for each chain; the fetch port never idles between chains.
    follows = {
        "engine": (tl.exp, 1, exp, times.computed_ps(exp), "fill + vectors x cycles"),
        "fetch": (tl.add, 2, add, times.fetched_ps(add), "bytes at the fetch port"),
    }

    def kernel(function: Callable[..., Value], operands: int) -> Callable[[], None]:
        def run() -> None:
            context = running_kernel()
            made = [
                context.math("full", (1,), MathOptions(dtype=float32, shape=(size,)))
                for _ in range(operands)
            ]
            for _ in range(count):
                tl.fused_async(function, *made)

        return run

    kernels = [kernel(function, operands) for function, operands, *_ in follows.values()]
    return [
        Check(
            id=f"v.flight.{name}",
            text=f"{count} chains of {size:,} elements in flight",
            formula=f"issue + the first one + {count - 1} x ({formula})",
            expected=FixedTimes(file).issue_ps + times.chain_ps([work]) + (count - 1) * each_ps,
            measured=took_ps,
            unit="ps",
        )
        for (name, (_, _, work, each_ps, formula)), took_ps in zip(
            follows.items(), _measured_ps(file, kernels), strict=True
        )
    ]


def _cases(columns: int) -> list[ChainCase]:
    """Chains on `ROWS` rows of `columns` elements."""
    wide, row, column = (ROWS, columns), (1, columns), (ROWS, 1)
    return [
        *_one_pass(wide, row),
        *_softmaxes(wide, column),
        _layer_norm(wide, row),
        _small_operands(wide, column),
        _totals(wide),
    ]


def _one_pass(wide: Shape, row: Shape) -> list[ChainCase]:
    n, m = prod(wide), prod(row)

    def elementwise(a: Value, b: Value) -> Value:
        return tl.exp(a * b) - a

    def casts(a: Value) -> tuple[Value, ...]:
        return a.to(float16), a.to(int32) + 1, a > 0

    def magnitude(a: Value) -> Value:
        return tl.relu(a) + tl.relu(-a)

    return [
        ChainCase(
            "elementwise",
            elementwise,
            (wide, row),
            (
                PassWork(
                    [Elements(n), Elements(m)], [("mul", n), ("exp", n), ("sub", n)], [Elements(n)]
                ),
            ),
        ),
        ChainCase(
            "types",
            casts,
            (wide,),
            (
                PassWork(
                    [Elements(n, 8)],
                    [("cast", n), ("cast", n), ("add", n), ("compare", n)],
                    [Elements(n, 2), Elements(n, 4), Elements(n, 1)],
                ),
            ),
            dtype=float64,
            item_bytes=8,
        ),
        ChainCase(
            "bytes",
            magnitude,
            (wide,),
            (
                PassWork(
                    [Elements(n, 1)],
                    [("relu", n), ("mul", n), ("relu", n), ("add", n)],
                    [Elements(n, 1)],
                ),
            ),
            dtype=int8,
        ),
    ]


def _softmaxes(wide: Shape, column: Shape) -> list[ChainCase]:
    n, m = prod(wide), prod(column)
    scores, each_row = Elements(n), Elements(m)
    largest = PassWork([scores], [("max", n)], reduces=True)

    def softmax(x: Value) -> Value:
        e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
        return e / tl.sum(e, axis=1, keep_dims=True)

    def online(s: Value, m: Value, total: Value) -> tuple[Value, ...]:
        m2 = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
        p, alpha = tl.exp2(s - m2), tl.exp2(m - m2)
        return m2, total * alpha + tl.sum(p, axis=1, keep_dims=True), p.to(float16)

    return [
        ChainCase(
            "softmax",
            softmax,
            (wide,),
            (
                largest,
                PassWork([scores], [("sub", n), ("exp", n), ("sum", n)], reduces=True),
                PassWork([scores], [("sub", n), ("exp", n), ("div", n)], [scores]),
            ),
        ),
        ChainCase(
            "online",
            online,
            (wide, column, column),
            (
                PassWork(
                    [scores, each_row, each_row],
                    [("max", n)],
                    reduces=True,
                    tail=[("maximum", m), ("sub", m), ("exp2", m), ("mul", m)],
                    kept=[each_row],
                ),
                PassWork(
                    [scores],
                    [("sub", n), ("exp2", n), ("sum", n), ("cast", n)],
                    [Elements(n, 2)],
                    reduces=True,
                    tail=[("add", m)],
                    kept=[each_row],
                ),
            ),
        ),
    ]


def _layer_norm(wide: Shape, row: Shape) -> ChainCase:
    n, m, rows = prod(wide), prod(row), wide[0]

    def norm(x: Value, gain: Value, shift: Value) -> Value:
        centred = x - tl.sum(x, axis=1, keep_dims=True) / wide[1]
        variance = tl.sum(centred * centred, axis=1, keep_dims=True) / wide[1]
        return centred * tl.rsqrt(variance + 1e-5) * gain + shift

    return ChainCase(
        "layer_norm",
        norm,
        (wide, row, row),
        (
            PassWork([Elements(n)], [("sum", n)], reduces=True, tail=[("div", rows)]),
            PassWork(
                [Elements(n)],
                [("sub", n), ("mul", n), ("sum", n)],
                reduces=True,
                tail=[("div", rows), ("add", rows), ("rsqrt", rows)],
            ),
            PassWork(
                [Elements(n), Elements(m), Elements(m)],
                [("sub", n), ("mul", n), ("mul", n), ("add", n)],
                [Elements(n)],
            ),
        ),
    )


def _small_operands(wide: Shape, column: Shape) -> ChainCase:
    """A small operand that is prepared in the stream of the pass that needs it."""
    n, m = prod(wide), prod(column)

    def scaled(a: Value, b: Value) -> Value:
        return (a - tl.max(a)) * (b * 2 + 1)

    return ChainCase(
        "small",
        scaled,
        (wide, column),
        (
            PassWork([Elements(n)], [("max", n)], reduces=True),
            PassWork(
                [Elements(n), Elements(m)],
                [("sub", n), ("mul", m), ("add", m), ("mul", n)],
                [Elements(n)],
            ),
        ),
    )


def _totals(wide: Shape) -> ChainCase:
    """A reduction of a reduction, in the tail, and a wide result beside it."""
    n, rows = prod(wide), wide[0]

    def totals(a: Value) -> tuple[Value, ...]:
        sums = tl.sum(a, axis=1)
        return a * 2, sums, tl.max(sums)

    return ChainCase(
        "totals",
        totals,
        (wide,),
        (
            PassWork(
                [Elements(n)],
                [("sum", n), ("mul", n)],
                [Elements(n)],
                reduces=True,
                tail=[("max", rows)],
                trees=1,
                kept=[Elements(rows), Elements(1)],
            ),
        ),
    )


def chains_on(file: TopologyFile, prefix: str, title: str) -> list[Check]:
    """All chains on one topology, with ids that start with `prefix`."""
    lanes: int = file["pe.math.lanes"]
    issue_ps = FixedTimes(file).issue_ps
    # Parts of a vector at the end, and rows that do not end with a vector.
    cases = _cases(3 * lanes + lanes // 2 + 1)
    measured = _measured_ps(file, [case.kernel for case in cases])
    return [
        Check(
            id=f"{prefix}.{case.id}",
            text=f"{title}{case.id} of {ROWS} rows, passes: {len(case.passes)}",
            formula="issue + vectors through fetch, engine, store; a tree and a tail a pass",
            expected=issue_ps + ChainTimes(file, case.item_bytes).chain_ps(case.passes),
            measured=took_ps,
            unit="ps",
        )
        for case, took_ps in zip(cases, measured, strict=True)
    ]


def _measured_ps(file: TopologyFile, kernels: Sequence[Callable[[], None]]) -> list[int]:
    """The time of each kernel behind the last operand that it makes, on PE 0 of a SIP."""

    def program(_rank: int) -> None:
        for kernel in kernels:
            launch_on("chain", kernel, (), [], [(0, 0)])

    world = simulate(program, 1, topology=file.text, data=False)
    made = [record.end_ps for _, record in world.of("pe_math", "full")]
    times_ps: list[int] = []
    for _, record in world.of("pe_cpu", "kernel chain"):
        last_ps = max(end_ps for end_ps in made if end_ps < record.end_ps)
        times_ps.append(record.end_ps - last_ps)
    return times_ps
