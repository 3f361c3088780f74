"""The whole sweep: every shape in every staging, simulated in worker processes, with its progress."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TextIO

from benches.milestone_1h_gemm.point import Point, measure
from benches.milestone_1h_gemm.pool import completed
from benches.milestone_1h_gemm.rows import VERSION, Row, Sweep
from benches.milestone_1h_gemm.shapes import Shape, Staging
from benches.milestone_1h_gemm.theory import Hardware
from benches.validate.variant import Variant
from runtime.config_file import config_hash
from runtime.errors import UsageError
from runtime.hardware.topology import parse_topology
from runtime.simtime import format_ps

Done = Iterator[tuple[Point, Row]]


@dataclass(frozen=True)
class Plan:
    """What is to be simulated: on the topology file `source`, every point of `points`, the rows in their order."""

    source: str
    topology_hash: str
    hardware: Hardware
    points: tuple[Point, ...]


def plan_sweep(source: str, text: str, shapes: Iterable[Shape]) -> Plan:
    """Every shape in every staging, on one PE of one SIP of the topology file `source`, whose content is `text`.

    Raises `ConfigError` for a wrong file, `UsageError` where operands do not fit.
    """
    topology = parse_topology(text, source)
    hardware = Hardware.of(topology)
    one_sip = Variant.of(text).on_a_ring(1).text
    points = tuple(Point(one_sip, hardware, shape, staging) for shape in shapes for staging in Staging)
    for point in points:
        _check_scratch(point)
    return Plan(source, config_hash(topology), hardware, points)


def simulate_sweep(plan: Plan, procs: int, timeout_s: float) -> Sweep:
    """Simulate the plan in `procs` processes. The result does not depend on their number."""
    # The longest first, so that no process is left alone with one at the end.
    ordered = sorted(plan.points, key=lambda point: point.steps, reverse=True)
    with closing(completed(measure, ordered, procs, timeout_s)) as done:
        rows = dict(_shown(done, len(ordered), sys.stderr))
    return Sweep(VERSION, plan.source, plan.topology_hash, plan.hardware, tuple(rows[point] for point in plan.points))


def _check_scratch(point: Point) -> None:
    needed, there = point.staging.loaded_bytes(point.shape), point.hardware.kernel_scratch_bytes
    if needed > there:
        raise UsageError(
            f"--shapes: {point} loads {needed:,} bytes of operands, "
            f"but kernel scratch is {there:,} bytes (pe.tcm.kernel_scratch_mb of the topology file)"
        )


def _shown(done: Done, count: int, stream: TextIO) -> Done:
    """The same points; a bar on a terminal, a line for each elsewhere."""
    return _as_bar(done, count, stream) if stream.isatty() else _as_lines(done, count, stream)


def _as_lines(done: Done, count: int, stream: TextIO) -> Done:
    for number, (point, row) in enumerate(done, start=1):
        print(f"{number}/{count}  {point}  {format_ps(row.kernel_ps)}", file=stream, flush=True)
        yield point, row


def _as_bar(done: Done, count: int, stream: TextIO) -> Done:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(f"{count} products are starting", total=count)
        for point, row in done:
            bar.update(task, advance=1, description=f"{point}  {format_ps(row.kernel_ps)}")
            yield point, row
