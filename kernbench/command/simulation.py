"""Runs one simulation: makes its plan, runs it, prints and writes its report."""

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from coordinator.launch.launcher import Launcher
from coordinator.launch.node_launch import NodeLaunch
from coordinator.launch.start import Launch
from coordinator.plan import Plan, ProgramSpec, RunConfig, load_config
from coordinator.report.aggregate import RunReport, merge_outcomes, sip_reports, summarise
from coordinator.report.failed_reports import FailedReports
from coordinator.report.files import prepare_directory
from coordinator.report.hosts_heading import HeadingOfHosts
from coordinator.report.progress import progress
from coordinator.report.record_rows import RecordRows
from coordinator.report.run_directory import RunFiles
from coordinator.report.tables import bench_table, heading, nccl_table, pass_line, run_statistics
from coordinator.session import RunResult, Session
from coordinator.verify.verdict import Verdict
from coordinator.watch.failure import Interrupted, RankFailed
from kernbench.benches.short_runs import procs_by_cores
from kernbench.command.exit_codes import ExitCode, print_error, print_note, print_warning
from kernbench.command.native_part import build_native_part
from kernbench.command.options import AUTO, SimulationOptions
from kernbench.command.run_request import RunRequest
from runtime.core.bench_registry import Bench, registered
from runtime.core.code.package_check import check_packages
from runtime.core.cores import usable_cores
from runtime.core.errors import KernbenchError, UsageError
from runtime.core.output import OutputError, UnwrittenOutputs, print_lines
from runtime.model.addresses import AddressMap
from runtime.wire.environment import race_check_requested
from runtime.wire.reports import SipReport, in_order_of_time

if TYPE_CHECKING:
    from kernbench.explain.records.records import RunRecords

_WHY = ("kernbench.explain.records.collected", "kernbench.explain.why.summary")
"""The modules of the last lines of a run with a trace."""


def simulate(request: RunRequest, launcher: Launcher | Launch) -> int:
    """Run a bench or a script; returns the exit code."""
    plan = checked_plan(request)
    build_native_part(plan.program)
    options = request.options
    if request.checks and not options.trace:
        raise UsageError("--check-races reads the records of the run, and --no-trace writes none")
    return run(plan, launcher, options.out, verbose=options.verbose, checks=request.checks)


def checked_plan(request: RunRequest) -> Plan:
    """The plan of a run. Raises `UsageError` or `ConfigError` for what is wrong in the request."""
    plan = make_plan(request.options, program_of(request))
    if request.bench is not None and request.bench.check is not None:
        request.bench.check(plan.config.ccl, **request.flags)
    return plan


def program_of(request: RunRequest) -> ProgramSpec:
    """The program that the ranks run."""
    script, bench = request.script, request.bench
    if request.module:
        return ProgramSpec(
            "module",
            request.module,
            request.module,
            argv=request.argv,
            as_cuda=request.as_cuda,
        )
    if script is not None:
        return ProgramSpec(
            "script",
            str(script),
            str(script.resolve()),
            argv=request.argv,
            as_cuda=request.as_cuda,
        )
    assert bench is not None, "a request has a bench or a script"
    return ProgramSpec("bench", bench.name, bench.program, request.flags)


def make_plan(options: SimulationOptions, program: ProgramSpec) -> Plan:
    """The plan of a run of `program`. Raises `UsageError` or `ConfigError`."""
    # A rank puts the directory of its script on the import path, as `python script.py` does.
    directories = import_folders(program)
    # Before ccl.yaml is checked, which finds the modules that it names as a rank would.
    check_packages(*directories)
    config = load_config(options.topology, options.ccl, options.sips, directories)
    return plan_of_config(options, program, config)


def plan_of_config(options: SimulationOptions, program: ProgramSpec, config: RunConfig) -> Plan:
    """The plan of a run of `program` on the machine of `config`, not on that of `options`."""
    return Plan(
        config=config,
        program=program,
        procs=_procs(options, config.topology.system.sips.count, program),
        by_cores=options.procs == AUTO,
        data=options.data,
        timeout_s=options.timeout,
        jitter_ms=options.jitter_ms,
        jitter_seed=options.jitter_seed,
        delay_us=options.delay_us,
        verify=options.verify_data,
        trace=options.trace,
    )


def import_folders(program: ProgramSpec) -> tuple[str, ...]:
    """The folders that a rank searches first for modules, as Python does for a script or `-m`."""
    if program.kind == "module":
        return (str(Path.cwd()),)
    return (str(Path(program.path).parent),) if program.kind == "script" else ()


def _procs(options: SimulationOptions, sips: int, program: ProgramSpec) -> int:
    """The number of processes for a value of `--procs`."""
    requested = options.procs
    if program.is_script:
        if requested not in (None, AUTO, sips):
            raise UsageError(
                f"--procs {requested} with a script: its {sips} ranks need {sips} processes. In "
                "one process they would share what is theirs alone: the modules of the script, "
                "random numbers and other state of packages, the working directory. A bench "
                "(--bench FILE.py:name) is written for it"
            )
        return sips
    if requested == AUTO:
        return procs_by_cores(sips, _default_bench(options, program))
    if requested is None:
        return sips
    if int(requested) > sips:
        count = "1 SIP" if sips == 1 else f"{sips} SIPs"
        raise UsageError(f"--procs {requested} for {count}: at most one process for each SIP")
    return int(requested)


def _default_bench(options: SimulationOptions, program: ProgramSpec) -> str | None:
    """The name of the bench that runs with default flags and configuration, None without one."""
    if options.topology is not None or options.ccl is not None:
        return None
    for entry in registered():
        if isinstance(entry, Bench) and entry.program == program.path:
            defaults = {flag.name: flag.default for flag in entry.flags}
            return entry.name if defaults == program.arguments else None
    return None


def _note_on_cores(plan: Plan) -> str:
    """A line on the cost of more processes than cores; empty where there are enough cores."""
    cores = usable_cores()
    if plan.procs <= cores or plan.program.is_script:
        return ""
    return (
        f"{plan.procs} processes take turns on {cores} core{'s' if cores > 1 else ''}, and each "
        f"has its own start and about 50 MB; --procs {AUTO} runs {cores} at most"
    )


class ReportLines(Protocol):
    """The lines printed before a run starts and after its ranks have returned."""

    def heading(self, plan: Plan) -> Iterable[str]:
        """The program and the machine of the run."""
        ...

    def results(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterable[str]:
        """The results of a run without error."""
        ...

    def write(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> None:
        """Write the files of the results, besides those of `--out`. Raises `OutputError`."""
        ...


class BenchReportLines:
    """The lines of a bench or a script."""

    def heading(self, plan: Plan) -> Iterable[str]:
        """The program and its flags."""
        return heading(plan)

    def results(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterable[str]:  # noqa: ARG002
        """The pass line, and the table of a bench."""
        outcome = merge_outcomes(sips)
        yield pass_line(plan.program.name, plan.world_size, outcome)
        if outcome and outcome.rows:
            yield from nccl_table(outcome.rows)
        if outcome and outcome.table:
            yield from bench_table(outcome.table)

    def write(self, plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> None:
        """A bench has no files of its own."""


def run(
    plan: Plan,
    launcher: Launcher | Launch,
    out: Path | None,
    lines: ReportLines | None = None,
    *,
    keeps_files: bool = True,
    verbose: bool = False,
    checks: bool = False,
) -> int:
    """Run `plan`, print its report, write its files with `keeps_files`; returns the exit code.

    With `verbose` the lines at the end are complete, with `checks` the run is checked for races.
    Input that a rank finds wrong is raised as `UsageError`, and an output that cannot be written as
    `OutputError`, after the other outputs.
    """
    check = race_check_requested() if plan.trace else ""
    lines, checks = lines or BenchReportLines(), checks or bool(check)
    # A directory that cannot be written ends the command before the run.
    lock = prepare_directory(out, plan.program.name) if keeps_files else None
    directory = None if lock is None else lock.directory
    print_lines(lines.heading(plan))
    # On other hosts are other cores.
    if not isinstance(launcher, NodeLaunch) and (note := _note_on_cores(plan)):
        print_note(note)
    observer = HeadingOfHosts(progress(sys.stderr, alone=plan.procs == 1))
    files = None if lock is None else RunFiles(lock, plan, partial(_why, plan.sips, verbose), _WHY)
    result = Session(plan, launcher, observer, files).run()
    report = summarise(plan, result, _verdict(plan, result))
    unwritten, failed = UnwrittenOutputs(), FailedReports() if files is None else files.failed
    # Also after an error, whose cause they may show.
    with unwritten.attempt():
        print_lines(map(str, in_order_of_time(result.collected.prints)))
    if result.is_complete:
        sips = sip_reports(result.collected.done)
        # Printed before files are written: a full disk must not cost the user the results.
        with unwritten.attempt(), failed.attempt("table of the results"):
            print_lines(lines.results(plan, report, sips))
        with unwritten.attempt():
            print_lines(run_statistics(report, verbose=verbose))
        with unwritten.attempt(), failed.attempt("file of the results"):
            lines.write(plan, report, sips)
    if files is not None:
        # Written also after an error: the op log until then helps to find its cause.
        with unwritten.attempt():
            files.finish(result.collected, report)
            if result.is_complete:
                print_lines([*files.explanation(), f"files           {directory}"])
    for warning in [*failed.take(), *result.warnings]:
        print_warning(warning)
    if result.error is not None:
        code = _explain(result.error, directory if unwritten.error is None else None)
        if isinstance(unwritten.error, OutputError):
            print_error(unwritten.error)
        return code
    unwritten.check()
    is_clean = not checks or directory is None or _is_clean(directory, is_strict=check == "strict")
    return ExitCode.PASSED if report.passed and is_clean else ExitCode.FAILED


def _is_clean(directory: Path, *, is_strict: bool) -> bool:
    """Check the run in a directory, print its findings, and return whether there are none."""
    # Imported here: other runs read no records.
    from kernbench.explain.check.checked_runs import note_findings
    from kernbench.explain.check.findings import check_records
    from kernbench.explain.check.report import finding_lines
    from kernbench.explain.records import open_run

    findings = check_records(open_run(directory), is_strict=is_strict)
    note_findings(findings, str(directory))
    print_lines(finding_lines(findings, str(directory)))
    return not findings.reports


def _why(sips: int, verbose: bool, records: RecordRows, total_ps: int) -> list[str]:  # noqa: FBT001 - bound by `run`
    """The parts of the time of a run, in one line or in five."""
    # Imported here: a run without a trace needs no arrays. One with a trace has them already.
    from kernbench.explain.records.collected import collected_records
    from kernbench.explain.why.summary import summary_lines

    collected = collected_records(sips, total_ps, records)
    return list(summary_lines(collected, verbose=verbose))


def _verdict(plan: Plan, result: RunResult) -> Verdict | None:
    if not plan.verify or not result.is_complete:
        return None
    # Imported on demand: only the replay computes with arrays.
    from coordinator.verify.check import verify

    collected = result.collected
    verdict = verify(
        collected.logs.records(),
        collected.written,
        collected.contents,
        AddressMap(plan.config.topology),
    )
    if verdict.passed or not plan.trace:
        return verdict
    from kernbench.explain.records.collected import collected_records

    rows = RecordRows(collected.records)
    return with_races(verdict, collected_records(plan.sips, collected.time_ps, rows))


def with_races(verdict: Verdict, records: "RunRecords") -> Verdict:
    """A verdict of data that differ, whose first problem is a race of the program if it has any:
    the chip reads memory while a load lasts, the replay at its start.
    """
    from kernbench.explain.check.findings import check_records

    races = check_records(records).races
    race = next(iter(races), None)
    if race is None:
        return verdict
    problem = (
        f"the program has {len(races)} race{'s' if len(races) > 1 else ''}, by which its data "
        f"depend on the machine: element {race.element} of tensor {race.tensor}, "
        f"{race.first.operation} at {race.first.line} and "
        f"{race.second.operation} at {race.second.line}; "
        "kernbench check has all that would order them"
    )
    return replace(verdict, problems=(problem, *verdict.problems))


def _explain(error: KernbenchError, directory: Path | None) -> int:
    if isinstance(error, RankFailed):
        if error.is_about_input:
            # All ranks find the same problem, and a traceback of kernbench's code would not help.
            raise UsageError(error.failed.message) from error
        if error.failed.traceback:
            sys.stderr.write(error.failed.traceback.rstrip() + "\n")
    if isinstance(error, UsageError):
        # A limit of the shell, found when the processes were to start.
        raise error
    print_error(error)
    if directory is not None:
        sys.stderr.write(f"kernbench: the files until the error are in {directory}\n")
    return ExitCode.SIGNALLED + error.signum if isinstance(error, Interrupted) else ExitCode.FAILED
