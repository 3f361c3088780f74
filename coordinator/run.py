"""The command `run`: make the plan, run it, print and write the report."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from coordinator.aggregate import RunReport, merge_op_log, merge_outcomes, sip_reports, summarise
from coordinator.ending import ExitCode, complain
from coordinator.failure import Interrupted, RankFailed
from coordinator.launcher import Launcher
from coordinator.options import Invocation
from coordinator.plan import Plan, Program, load_config
from coordinator.report.files import prepare_directory, write_files
from coordinator.report.progress import progress
from coordinator.report.tables import figures, heading, nccl_table, pass_line
from coordinator.session import Session
from runtime.errors import KernbenchError, UsageError
from runtime.wire.messages import SipReport


def make_plan(invocation: Invocation) -> Plan:
    """The plan that the command line asks for; raises `UsageError` or `ConfigError`."""
    config = load_config(invocation.topology, invocation.ccl, invocation.sips)
    sips = config.topology.system.sips.count
    if invocation.script is not None and invocation.procs not in (None, sips):
        raise UsageError(
            f"--procs {invocation.procs} with a script: its {sips} ranks need {sips} processes, "
            "in one process they would share the state of its modules"
        )
    return Plan(
        config,
        _program(invocation),
        sips if invocation.procs is None else invocation.procs,
        data=invocation.data,
        timeout_s=invocation.timeout,
        jitter_ms=invocation.jitter_ms,
        jitter_seed=invocation.jitter_seed,
    )


def run(plan: Plan, launcher: Launcher, out: Path | None) -> int:
    """Run `plan`, print and write its report; returns the exit code. What a rank finds wrong with its input is raised."""
    directory = prepare_directory(out, plan.program.name)
    _print(heading(plan))
    result = Session(plan, launcher, progress(sys.stderr, alone=plan.procs == 1)).run()
    report = summarise(plan, result)
    write_files(directory, report, merge_op_log(result.gathered.logs))
    if result.error is not None:
        return _explain(result.error, directory)
    _print(_summary(plan, report, sip_reports(result.gathered.done)))
    _print([f"files           {directory}"])
    return ExitCode.PASSED if report.passed else ExitCode.FAILED


def _program(invocation: Invocation) -> Program:
    script, bench = invocation.script, invocation.bench
    if script is not None:
        return Program("script", str(script), str(script.resolve()), argv=invocation.argv)
    assert bench is not None, "the command line names a bench or a script, or means the default bench"
    return Program("bench", bench.name, bench.program, invocation.flags)


def _summary(plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterable[str]:
    outcome = merge_outcomes(sips)
    yield pass_line(plan.program.name, plan.sips, outcome)
    if outcome and outcome.rows:
        yield from nccl_table(outcome.rows)
    yield from figures(report)


def _explain(error: KernbenchError, directory: Path) -> int:
    if isinstance(error, RankFailed):
        if error.is_about_input:
            # Every rank finds the same; where in our code it does is of no use to the user.
            raise UsageError(error.failed.message) from error
        sys.stderr.write(error.failed.traceback.rstrip() + "\n")
    complain(error)
    sys.stderr.write(f"kernbench: what was traced is in {directory}\n")
    return ExitCode.SIGNALLED + error.signum if isinstance(error, Interrupted) else ExitCode.FAILED


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
