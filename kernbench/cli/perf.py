"""The command `perf`: what is asked for, a run of it on every rank, and the table of what they measured."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from coordinator.aggregate import RunReport
from coordinator.launcher import Launcher
from coordinator.plan import Plan, ProgramSpec
from coordinator.report.tables import run_description
from kernbench.benches.collective_perf.collective import Case, Request, cases
from kernbench.cli.options import Invocation
from kernbench.cli.run import make_plan, run
from kernbench.cli.tools import run_command
from kernbench.perf.arguments import AVERAGES, Asked, command
from kernbench.perf.bound import Bounds
from kernbench.perf.table import algorithm_words, clear, make_row, parameters, table, write_json
from runtime.core.errors import UsageError
from runtime.wire.messages import SipReport

PROGRAM = "kernbench.benches.collective_perf.program:collective_perf"


def perf(words: Sequence[str], launcher: Launcher) -> int:
    """Run what `words` ask for, those behind the word `perf` and the options before it; returns the exit code."""
    asked = run_command(command(), "perf", words)
    if not isinstance(asked, Asked):
        return asked or 0
    plan = plan_of(asked)
    request = Request(**plan.program.arguments)  # pyright: ignore[reportArgumentType] - as `plan_of` made them
    rows = tuple(cases(request, plan.sips))
    if not rows:
        raise UsageError(
            f"perf: no size from -b {request.min_bytes} to -e {request.max_bytes} has an element for every rank"
        )
    if asked.json is not None:
        clear(asked.json)
    return run(plan, launcher, asked.out, _Words(asked, request, rows))


def plan_of(asked: Asked) -> Plan:
    """The run. Its op log is kept where a folder for it is named: that of large sizes would not fit into memory."""
    plan = make_plan(
        Invocation(**asked.general),
        ProgramSpec("bench", f"{asked.request.collective}_perf", PROGRAM),
    )
    request, topology = asked.request, plan.config.topology
    request = replace(request, pes=request.pes or topology.pes_per_cube)
    for name, value, available in (
        ("cubes", request.cubes, topology.cubes),
        ("pes", request.pes, topology.pes_per_cube),
    ):
        if value > available:
            raise UsageError(f"perf: --{name} {value}: there are {available}")
    if request.root >= plan.sips:
        raise UsageError(f"perf: -r {request.root}: the ranks are 0 to {plan.sips - 1}")
    plan.config.ccl.resolve(request.algorithm or None)
    program = replace(plan.program, arguments=asdict(request))
    return replace(
        plan, program=program, trace=asked.out is not None or plan.verify or plan.ccl_trace
    )


@dataclass(frozen=True)
class _Words:
    """What is said of the run."""

    asked: Asked
    request: Request
    cases: tuple[Case, ...]

    def heading(self, plan: Plan) -> Iterator[str]:
        yield run_description(plan)
        words = algorithm_words(self._algorithm(plan), self._ran(plan))
        yield from parameters(self.request, self.asked.average, plan.sips, words)

    def results(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterator[str]:
        outcomes = [sip.outcome for sip in sips if sip.outcome is not None]
        bounds = Bounds(plan.config.topology, self.request.cubes, self.request.pes)
        measured = zip(*(outcome.rows for outcome in outcomes), strict=True)
        ran = self._ran(plan)
        rows = [
            make_row(case, ran[case.size_bytes], of_ranks, self.asked.average, bounds.of(case))
            for case, of_ranks in zip(self.cases, measured, strict=True)
        ]
        if self.asked.json is not None:
            sips_of = plan.config.topology.system.sips
            about = {
                "ranks": plan.sips,
                "topology": sips_of.topology,
                "fabric": sips_of.fabric,
                "config_hash": plan.config.hash,
                "algorithm": self._algorithm(plan),
                "average": AVERAGES[self.asked.average],
                "digest": report.digest,
            }
            write_json(self.asked.json, self.request, rows, about)
        yield from table(rows)

    def _algorithm(self, plan: Plan) -> str:
        return self.request.algorithm or plan.config.ccl.file.defaults.algorithm

    def _ran(self, plan: Plan) -> dict[int, str]:
        """The algorithm of each size: for one collective of so many ranks it depends on nothing else."""
        return {
            case.size_bytes: case.algorithm(plan.config.ccl, self._algorithm(plan))
            for case in self.cases
        }
