"""Group j: busy cycles of an output-stationary array, against SCALE-Sim and its formula."""

import csv
from pathlib import Path

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.engines.gemm_runs import GemmCase, measure
from kernbench.oracle.theory.engines.gemm import GemmShape, systolic_cycles
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import seeded
from runtime.core.simtime import PS_PER_NS

REFERENCE = Path(__file__).parents[1] / "reference" / "scalesim_os32x32.csv"
LARGEST = 256
"""Largest side of random products."""
SHAPES = 3


def systolic(file: TopologyFile, seed: int) -> list[Check]:
    """Busy cycles of an output-stationary array: the shapes of SCALE-Sim, then random shapes."""
    # At 1 GHz, a cycle is 1000 ps: busy time divides into cycles without a rest.
    file = file.with_values({"pe.gemm.model": "systolic_os", "pe.gemm.clock_ghz": 1.0})
    rows = [row for row in reference() if row["dataflow"] == "os" and row["stall_cycles"] == "0"]
    rng = seeded(seed)
    drawn = [GemmShape(*(rng.randint(1, LARGEST) for _ in "mkn")) for _ in range(SHAPES)]
    return [*(_referenced(file, row) for row in rows), *(_systolic(file, shape) for shape in drawn)]


def reference() -> list[dict[str, str]]:
    """The rows of the SCALE-Sim reference as they are in its file."""
    with REFERENCE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _referenced(file: TopologyFile, row: dict[str, str]) -> Check:
    """A row of the reference.

    SCALE-Sim reports the number of the last cycle, counted from 0; one cycle more has passed.
    """
    rows, cols, m, n, k = (int(row[column]) for column in ("rows", "cols", "M", "N", "K"))
    last = int(row["scalesim_total_cycles"])
    array = f"M {m}, N {n}, K {k} on {rows} x {cols}"
    return Check(
        id=f"j.systolic.{m}x{n}x{k}",
        text=f"{array}: busy cycles; the last cycle of SCALE-Sim, counted from 0, is {last}",
        formula="SCALE-Sim + 1",
        expected=last + 1,
        measured=_busy_cycles(file, GemmShape(m, k, n), rows, cols),
        unit="cycles",
    )


def _systolic(file: TopologyFile, shape: GemmShape) -> Check:
    rows, cols = file["pe.gemm.rows"], file["pe.gemm.cols"]
    return Check(
        id=f"j.systolic.{shape.m}x{shape.n}x{shape.k}",
        text=f"M {shape.m}, N {shape.n}, K {shape.k} on {rows} x {cols}: busy cycles",
        formula="ceil(M/R) ceil(N/C) (K + R + C - 2)",
        expected=systolic_cycles(shape, rows, cols),
        measured=_busy_cycles(file, shape, rows, cols),
        unit="cycles",
    )


def _busy_cycles(file: TopologyFile, shape: GemmShape, rows: int, cols: int) -> float:
    array = {"pe.gemm.rows": rows, "pe.gemm.cols": cols, "pe.tile.m": rows, "pe.tile.n": cols}
    return measure(file.with_values(array), GemmCase(shape)).counter("gemm_busy_ps") / PS_PER_NS
