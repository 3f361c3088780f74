"""The command `run`: make the plan, run it, print and write the report."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from coordinator.aggregate import RunReport, merge_op_log, merge_outcomes, sip_reports, summarise
from coordinator.failure import Interrupted, RankFailed
from coordinator.launcher import Launcher
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.report.files import prepare_directory, write_ccl_trace, write_files
from coordinator.report.progress import progress
from coordinator.report.tables import bench_table, heading, nccl_table, pass_line, run_statistics
from coordinator.session import RunResult, Session
from coordinator.verify.check import verify
from coordinator.verify.verdict import Verdict
from kernbench.cli.ending import ExitCode, complain
from kernbench.cli.options import Invocation
from runtime.core.errors import KernbenchError, UsageError
from runtime.model.addresses import AddressMap
from runtime.wire.messages import SipReport


def make_plan(invocation: Invocation, program: ProgramSpec | None = None) -> Plan:
    """The plan that the command line asks for, or with its options that of `program`. Raises `UsageError` or `ConfigError`."""
    script = invocation.script
    # A rank finds modules beside its script, as `python script.py` does.
    directories = () if script is None else (str(script.resolve().parent),)
    config = load_config(invocation.topology, invocation.ccl, invocation.sips, directories)
    sips = config.topology.system.sips.count
    if invocation.script is not None and invocation.procs not in (None, sips):
        raise UsageError(
            f"--procs {invocation.procs} with a script: its {sips} ranks need {sips} processes, "
            "in one process they would share the state of its modules"
        )
    return Plan(
        config,
        program or _program(invocation),
        sips if invocation.procs is None else invocation.procs,
        data=invocation.data,
        timeout_s=invocation.timeout,
        jitter_ms=invocation.jitter_ms,
        jitter_seed=invocation.jitter_seed,
        verify=invocation.verify_data,
    )


class Words(Protocol):
    """What is said of a run before it starts, and of what its ranks have returned."""

    def heading(self, plan: Plan) -> Iterable[str]:
        """What runs."""
        ...

    def results(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterable[str]:
        """What came out, of a run that got to its end."""
        ...


class BenchWords:
    """The words of a bench or a script."""

    def heading(self, plan: Plan) -> Iterable[str]:
        """The program and its flags."""
        return heading(plan)

    def results(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterable[str]:  # noqa: ARG002
        """The pass line, and the table of a bench."""
        outcome = merge_outcomes(sips)
        yield pass_line(plan.program.name, plan.sips, outcome)
        if outcome and outcome.rows:
            yield from nccl_table(outcome.rows)
        if outcome and outcome.table:
            yield from bench_table(outcome.table)


def run(plan: Plan, launcher: Launcher, out: Path | None, words: Words | None = None) -> int:
    """Run `plan`, print its report in `words`, write its files if it is traced; returns the exit code.

    What a rank finds wrong with its input is raised.
    """
    words = words or BenchWords()
    directory = prepare_directory(out, plan.program.name) if plan.trace else None
    _print(words.heading(plan))
    result = Session(plan, launcher, progress(sys.stderr, alone=plan.procs == 1)).run()
    report = summarise(plan, result, _verdict(plan, result))
    if directory is not None:
        if plan.ccl_trace:
            write_ccl_trace(directory, result.collected.transfers)
        write_files(directory, report, merge_op_log(result.collected.logs))
    if result.error is not None:
        return _explain(result.error, directory)
    _print(words.results(plan, report, sip_reports(result.collected.done)))
    _print(run_statistics(report))
    if directory is not None:
        _print([f"files           {directory}"])
    return ExitCode.PASSED if report.passed else ExitCode.FAILED


def _verdict(plan: Plan, result: RunResult) -> Verdict | None:
    if not plan.verify or result.error is not None:
        return None
    gathered = result.collected
    return verify(
        gathered.logs, gathered.written, gathered.contents, AddressMap(plan.config.topology)
    )


def _program(invocation: Invocation) -> ProgramSpec:
    script, bench = invocation.script, invocation.bench
    if script is not None:
        return ProgramSpec("script", str(script), str(script.resolve()), argv=invocation.argv)
    assert bench is not None, (
        "the command line names a bench or a script, or means the default bench"
    )
    return ProgramSpec("bench", bench.name, bench.program, invocation.flags)


def _explain(error: KernbenchError, directory: Path | None) -> int:
    if isinstance(error, RankFailed):
        if error.is_about_input:
            # Every rank finds the same; where in our code it does is of no use to the user.
            raise UsageError(error.failed.message) from error
        sys.stderr.write(error.failed.traceback.rstrip() + "\n")
    complain(error)
    if directory is not None:
        sys.stderr.write(f"kernbench: what was traced is in {directory}\n")
    return ExitCode.SIGNALLED + error.signum if isinstance(error, Interrupted) else ExitCode.FAILED


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
