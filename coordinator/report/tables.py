"""Formats the report of a run: the pass line, a table as of nccl-tests, the run's statistics."""

from collections.abc import Iterator, Sequence

from coordinator.launch.placement import Placement
from coordinator.plan import Plan
from coordinator.report.aggregate import RunReport, wrong_elements
from coordinator.report.text_table import TextColumn, TextStyle, TextTable
from coordinator.verify.verdict import Verdict
from runtime.core.bench_registry import BenchOutcome, Column, PerfRow, Table
from runtime.core.compiled.choice import IS_FALLBACK
from runtime.core.cores import usable_cores
from runtime.core.simtime import PS_PER_NS, format_ps

_NCCL_COLUMNS = (
    TextColumn("size\n(B)", width=12),
    TextColumn("count\n(elements)", width=13),
    TextColumn("type\n", width=9),
    TextColumn("redop\n", width=8),
    TextColumn("time\n(us)", width=13),
    TextColumn("algbw\n(GB/s)", width=9),
    TextColumn("busbw\n(GB/s)", width=9),
    TextColumn("#wrong\n", width=8),
)
_NCCL_STYLE = TextStyle(gap=1, heading_marks=("#", "#"), row_mark=" ")
_BENCH_STYLE = TextStyle(gap=2, heading_marks=("# ", "  "), row_mark="  ")
_PS_PER_US = 1_000_000


def heading(plan: Plan) -> Iterator[str]:
    """The program with its arguments, and the machine; printed before the run."""
    program = plan.program
    flags = "".join(
        f" --{name.replace('_', '-')} {value}" for name, value in program.arguments.items()
    )
    arguments = "".join(f" {argument}" for argument in program.argv)
    yield f"# {program.kind} {program.name}{flags}{arguments}"
    yield run_description(plan)


def run_description(plan: Plan) -> str:
    """The machine of a run: SIPs, processes, topology, configuration; the core if it is slow."""
    processes = _count(plan.procs, "process", "processes")
    if plan.by_cores:
        cores = usable_cores()
        is_short = plan.procs < min(plan.sips, cores)
        processes += ": more do not pay in a short run" if is_short else f" by cores ({cores})"
    core = ", Python core" if IS_FALLBACK else ""
    return f"# {_count(plan.sips, 'sip')} in {processes}, {_topology(plan)}{core}"


def hosts_line(placement: Placement, sips_of_lp: Sequence[Sequence[int]]) -> str:
    """The SIPs of each host: `# hosts: node1 0-3, node2 4-7`."""
    parts = list[str]()
    for host, name in enumerate(placement.names):
        sips = [
            sip
            for its_host, of_lp in zip(placement.hosts, sips_of_lp, strict=True)
            for sip in of_lp
            if its_host == host
        ]
        parts.append(f"{name} {sips[0]}" + (f"-{sips[-1]}" if len(sips) > 1 else ""))
    return f"# sips of {'its host' if len(parts) == 1 else 'each host'}: {', '.join(parts)}"


def pass_line(label: str, world_size: int, outcome: BenchOutcome | None) -> str:
    """`intercube_allreduce (ws=2): 32 OK`."""
    if outcome is None:
        return f"{label} (ws={world_size}): {_count(world_size, 'rank')} finished"
    parts = [f"{outcome.ok} OK"] if outcome.ok or not outcome.unchecked else []
    parts += [f"{outcome.wrong} WRONG"] if outcome.wrong else []
    # A run without data passes, but it must not look as if its sums had been checked.
    parts += [f"{outcome.unchecked} NOT CHECKED (no data)"] if outcome.unchecked else []
    return f"{outcome.label} (ws={world_size}): {', '.join(parts)}"


def nccl_table(rows: Sequence[PerfRow]) -> Iterator[str]:
    """The rows with the columns of nccl-tests, and its two summary lines; times are simulated."""
    table = TextTable(_NCCL_COLUMNS, _NCCL_STYLE)
    for row in rows:
        table.row(
            str(row.size_bytes),
            str(row.count),
            row.dtype,
            row.redop,
            f"{row.time_ps / _PS_PER_US:.3f}",
            f"{row.algbw_gbs:.3f}",
            f"{row.busbw_gbs:.3f}",
            "N/A" if row.wrong is None else str(row.wrong),
        )
    yield from table.lines()
    yield f"# Out of bounds values : {_verdict(wrong_elements(rows))}"
    yield f"# Avg bus bandwidth    : {sum(row.busbw_gbs for row in rows) / len(rows):.3f} GB/s"


def bench_table(table: Table) -> Iterator[str]:
    """The table of a bench: labels, simulated time, values."""
    columns = [*table.labels, Column("time", "ns"), *table.values]
    text = TextTable(
        [
            TextColumn(f"{each.name}\n({each.unit})" if each.unit else f"{each.name}\n")
            for each in columns
        ],
        _BENCH_STYLE,
    )
    for row in table.rows:
        text.row(*map(_cell, (*row.labels, row.time_ps / PS_PER_NS, *row.values)))
    yield from text.lines()


def run_statistics(report: RunReport, *, verbose: bool = False) -> Iterator[str]:
    """Simulated time, speed, digest; with `verbose` also events and the cost of synchronisation."""
    rate = report.events / report.wall_s if report.wall_s else 0.0
    yield f"simulated time  {format_ps(round(report.sim_time_ns * PS_PER_NS))}"
    startup = f"after {report.startup_s:.3f} s to start"
    speed = f"{rate:,.0f} events/s{_folded(report)}"
    yield f"wall time       {report.wall_s:.3f} s, {startup} ({speed})"
    if verbose:
        yield f"events          {report.events:,} in all processes"
        yield f"sync            {_sync(report)}"
    yield f"digest          {report.digest[:16]}"
    if report.verification is not None:
        yield from _verification(report.verification)


def _folded(report: RunReport) -> str:
    """The shares of kernels that ran from command lists, and of those that were repeated."""
    kernels = sum(each.kernels for each in report.lps)
    listed = sum(each.listed_kernels for each in report.lps)
    repeated = sum(each.repeated_kernels for each in report.lps)
    shares = ((listed, "of kernels from lists"), (repeated, "repeated"))
    return "".join(f", {count / kernels:.0%} {what}" for count, what in shares if count)


def _cell(value: str | float) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)


def _verification(verdict: Verdict) -> Iterator[str]:
    elements = sum(memory.elements for memory in verdict.memories)
    buffers = sum(memory.buffers for memory in verdict.memories)
    worst_eps = max((memory.worst_eps for memory in verdict.memories), default=0.0)
    deviation = f"worst deviation {worst_eps:.1f} eps" if worst_eps else "every bit equal"
    compared = f"{elements:,} elements in {buffers:,} buffers compared"
    end = f"{deviation}  OK" if verdict.passed else "FAILED"
    yield f"verify-data     {verdict.operations:,} operations replayed, {compared}: {end}"
    # Aligned with the values of the lines above.
    for problem in verdict.problems:
        yield f"                {problem}"


def _verdict(wrong: int | None) -> str:
    if wrong is None:
        return "N/A, nothing was checked"
    return f"{wrong} {'OK' if wrong == 0 else 'FAILED'}"


def _sync(report: RunReport) -> str:
    if report.procs == 1:
        return "none: all SIPs are in one process"
    sync = report.sync
    return (
        f"{sync.rounds:,} rounds, {sync.messages:,} messages between processes, "
        f"{sync.null_messages:,} null messages (a time without packets)"
    )


def _topology(plan: Plan) -> str:
    sips = plan.config.topology.system.sips
    return f"{sips.topology} {sips.fabric}, config {plan.config.hash[:12]}"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
