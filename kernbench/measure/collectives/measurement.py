"""Runs the measurement of one collective on every rank, and reports its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from coordinator.launch.launcher import Launcher
from coordinator.launch.start import Launch
from coordinator.plan import Plan, ProgramSpec
from coordinator.report.aggregate import RunReport
from coordinator.report.tables import run_description
from kernbench.benches.collective_perf.bound import CollectiveBounds
from kernbench.benches.collective_perf.collective import PerfCase, PerfParameters, perf_cases
from kernbench.benches.collective_perf.cubes import nearest_cubes
from kernbench.benches.flags import check_algorithm
from kernbench.command.simulation import make_plan, run
from kernbench.measure.collectives.arguments import AVERAGES, SINGLE, PerfRequest
from kernbench.measure.collectives.table import (
    PerfTableRow,
    algorithm_text,
    make_row,
    parameter_lines,
    table_lines,
    write_json,
)
from runtime.ccl.group import is_grid
from runtime.core.errors import UsageError
from runtime.core.output import clear_output
from runtime.wire.reports import SipReport

PROGRAM = "kernbench.benches.collective_perf.program:collective_perf"


def measure(request: PerfRequest, launcher: Launcher | Launch) -> int:
    """Run the measurement; returns the exit code."""
    plan = plan_of(request)
    parameters = PerfParameters(**plan.program.arguments)  # pyright: ignore[reportArgumentType] - as `plan_of` made them
    cases = tuple(perf_cases(parameters, plan.world_size))
    if not cases:
        raise UsageError(
            f"perf: no size from -b {parameters.min_bytes} to -e {parameters.max_bytes} "
            "has an element for every rank"
        )
    # A wrong path is found before the run, not after it.
    if request.json is not None:
        clear_output(request.json, "perf: --json")
    lines = _PerfReportLines(request, parameters, cases)
    options = request.options
    return run(plan, launcher, options.out, lines, keeps_files=plan.trace, verbose=options.verbose)


def plan_of(request: PerfRequest) -> Plan:
    """The plan of the run; raises `UsageError` for parameters that the topology does not have."""
    name = f"{request.parameters.collective}_perf"
    plan = make_plan(request.options, ProgramSpec("bench", name, PROGRAM))
    topology = plan.config.topology
    for option, value, available in (
        ("cubes", request.cubes, topology.cubes),
        ("pes", request.parameters.pes, topology.pes_per_cube),
    ):
        if value > available:
            raise UsageError(f"perf: --{option} {value}: there are {available}")
    for cube in request.on_cubes:
        if cube >= topology.cubes:
            raise UsageError(f"perf: --on-cubes {cube}: the cubes are 0 to {topology.cubes - 1}")
    cubes = request.on_cubes or nearest_cubes(topology)[: request.cubes]
    parameters = replace(
        request.parameters,
        cubes=",".join(map(str, cubes)),
        pes=request.parameters.pes or topology.pes_per_cube,
    )
    if parameters.root >= plan.world_size:
        raise UsageError(f"perf: -r {parameters.root}: the ranks are 0 to {plan.sips - 1}")
    check_algorithm(plan.config.ccl, parameters.algorithm)
    program = replace(plan.program, arguments=asdict(parameters))
    # A verification and a trace of the slots read the op log, so they need it as well.
    traced = request.options.out is not None or plan.verify or plan.ccl_trace
    return replace(plan, program=program, trace=traced)


@dataclass(frozen=True)
class _PerfReportLines:
    """The lines before and after the run: parameters, then the table of the rows."""

    request: PerfRequest
    parameters: PerfParameters
    cases: tuple[PerfCase, ...]

    def heading(self, plan: Plan) -> Iterator[str]:
        yield run_description(plan)
        algorithm = algorithm_text(self._requested_algorithm(plan), self._algorithms(plan))
        reason = "chosen" if self.request.on_cubes else "nearest to the IO chiplet"
        yield from parameter_lines(
            self.parameters, self.request.average, plan.sips, algorithm, reason
        )

    def results(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterator[str]:  # noqa: ARG002
        return table_lines(self._rows(plan, sips))

    def write(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> None:
        if self.request.json is not None:
            rows = self._rows(plan, sips)
            write_json(self.request.json, self.parameters, rows, self._summary(plan, report))

    def _rows(self, plan: Plan, sips: Sequence[SipReport]) -> list[PerfTableRow]:
        outcomes = [sip.outcome for sip in sips if sip.outcome is not None]
        parameters = self.parameters
        bounds = CollectiveBounds(
            plan.config.topology, parameters.cube_numbers, parameters.pes, parameters.iters
        )
        # Rank 0 and the fastest rank are single ranks, which may leave the barrier after others.
        apart = self.request.average in SINGLE
        rows_of_ranks = zip(*(outcome.rows for outcome in outcomes), strict=True)
        return [
            make_row(
                case,
                self._algorithm(plan, case),
                rows,
                self.request.average,
                bounds.of(case, apart=apart),
            )
            for case, rows in zip(self.cases, rows_of_ranks, strict=True)
        ]

    def _summary(self, plan: Plan, report: RunReport) -> dict[str, object]:
        sips = plan.config.topology.system.sips
        return {
            "ranks": plan.sips,
            "topology": sips.topology,
            "fabric": sips.fabric,
            "config_hash": plan.config.hash,
            "algorithm": self._requested_algorithm(plan),
            "average": AVERAGES[self.request.average],
            "digest": report.digest,
        }

    def _requested_algorithm(self, plan: Plan) -> str:
        return self.parameters.algorithm or plan.config.ccl.file.defaults.algorithm

    def _algorithms(self, plan: Plan) -> dict[int, str]:
        """Size -> algorithm."""
        return {case.size_bytes: self._algorithm(plan, case) for case in self.cases}

    def _algorithm(self, plan: Plan, case: PerfCase) -> str:
        config, parameters = plan.config, self.parameters
        cubes, _ = case.spread(parameters.cube_numbers, parameters.pes)
        on_grid = is_grid(range(case.ranks), config.topology)
        requested = self._requested_algorithm(plan)
        return case.algorithm(config.ccl, requested, len(cubes), on_grid=on_grid)
