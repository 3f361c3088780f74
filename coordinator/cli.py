"""`kernbench`: read the command line, run, report, and say by the exit code how it went.

Exit codes: 0 passed; 1 wrong results or a failed run; 2 the user asked for something that does not exist; 128 + n stopped by
signal n.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from coordinator.aggregate import RunReport, merge_op_log, merge_outcomes, sip_reports, summarise
from coordinator.failure import Interrupted, RankFailed
from coordinator.help_text import help_text
from coordinator.launcher import InterpreterLauncher, Launcher
from coordinator.options import Invocation, find_bench, parse
from coordinator.plan import Plan, Program, load_config
from coordinator.report.files import prepare_directory, write_files
from coordinator.report.progress import progress
from coordinator.report.tables import figures, heading, nccl_table, pass_line
from coordinator.session import RunResult, Session
from runtime.bench_registry import Bench, registered
from runtime.errors import ConfigError, KernbenchError, UsageError
from runtime.wire.messages import SipReport

EXIT_FAILED, EXIT_USAGE = 1, 2


def main(words: Sequence[str] | None = None) -> int:
    """The command `kernbench` with the words of `sys.argv`; returns the exit code."""
    try:
        return _dispatch(sys.argv[1:] if words is None else words, InterpreterLauncher())
    except (UsageError, ConfigError) as error:
        _complain(error)
        return EXIT_USAGE
    except KernbenchError as error:
        _complain(error)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 128 + 2
    except BrokenPipeError:
        # Whoever read the output has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def _dispatch(words: Sequence[str], launcher: Launcher) -> int:
    benches = _load_benches()
    invocation = parse(words, benches)
    if invocation.help:
        _print(help_text(find_bench(invocation.bench, benches)))
        return 0
    if invocation.command == "list":
        _print(f"{number:3}  {bench.name:<24} {bench.description}" for number, bench in enumerate(benches, start=1))
        return 0
    return run(make_plan(invocation, benches), launcher, invocation.out)


def run(plan: Plan, launcher: Launcher, out: Path | None) -> int:
    """Run `plan`, print and write its report; returns the exit code."""
    directory = prepare_directory(out, plan.program.name)
    _print(heading(plan))
    result = Session(plan, launcher, progress()).run()
    reports = sip_reports(result.gathered.done)
    report = _report(plan, result, directory)
    if result.error is not None:
        _explain(result.error, directory)
        return 128 + result.error.signum if isinstance(result.error, Interrupted) else EXIT_FAILED
    _print(_summary(plan, report, reports))
    _print([f"files           {directory}"])
    return 0 if report.passed else EXIT_FAILED


def make_plan(invocation: Invocation, benches: Sequence[Bench]) -> Plan:
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
        _program(invocation, benches),
        sips if invocation.procs is None else invocation.procs,
        data=invocation.data,
        timeout_s=invocation.timeout,
        jitter_ms=invocation.jitter_ms,
        jitter_seed=invocation.jitter_seed,
    )


def _program(invocation: Invocation, benches: Sequence[Bench]) -> Program:
    if invocation.script is not None:
        path = invocation.script
        return Program("script", path.stem, str(path.resolve()), argv=invocation.argv)
    bench = find_bench(invocation.bench, benches)
    arguments = {flag.name: flag.default for flag in bench.flags} | dict(invocation.flags)
    return Program("bench", bench.name, bench.program, arguments)


def _report(plan: Plan, result: RunResult, directory: Path) -> RunReport:
    report = summarise(plan, result)
    write_files(directory, report, merge_op_log(result.gathered.logs))
    return report


def _summary(plan: Plan, report: RunReport, sips: Sequence[SipReport]) -> Iterable[str]:
    outcome = merge_outcomes(sips)
    yield pass_line(plan.program.name, plan.sips, outcome)
    if outcome and outcome.rows:
        yield from nccl_table(outcome.rows)
    yield from figures(report)


def _explain(error: KernbenchError, directory: Path) -> None:
    if isinstance(error, RankFailed):
        sys.stderr.write(error.failed.traceback.rstrip() + "\n")
    _complain(error)
    sys.stderr.write(f"kernbench: what was traced is in {directory}\n")


def _complain(error: KernbenchError) -> None:
    sys.stderr.write(f"kernbench: error: {error}\n")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _load_benches() -> Sequence[Bench]:
    from benches import load_all

    load_all()
    return registered()
