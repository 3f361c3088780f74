"""`kernbench run`, the default command: simulate a bench, a study or a script of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click

from kernbench.cli.list import print_entries, refuse_arguments
from kernbench.command.arguments import divide
from kernbench.command.commands import COMMANDS
from kernbench.command.entries import find_entry
from kernbench.command.options import (
    AUTO,
    DEFAULT_BENCH,
    HELP_NAMES,
    POINT_OPTIONS,
    SIMULATION_GROUPS,
    STUDY_GROUPS,
    STUDY_TIMEOUT_S,
    GroupedCommand,
    SimulationOptions,
    cli_context,
    flag_option,
    is_given,
    option,
    option_names,
)
from kernbench.command.run_request import RunRequest, module_name
from kernbench.command.torchrun_options import TORCHRUN, refuse_options, script_start
from runtime.core.bench_registry import Entry, Scalar, Study, StudyOptions
from runtime.core.errors import UsageError, nearest

_EXAMPLES = """\b
examples:
  kernbench --sips 4                        the default bench on four SIPs
  kernbench --sips 4 --procs 1              the same in one process, for a debugger
  kernbench --sips 2 train.py --steps 10    your own script, started as torchrun does
  kernbench --sips 2 -m package.train       your own module
  kernbench --help --bench NAME             the flags of another bench"""


@dataclass(frozen=True)
class StudyRequest:
    """A study with its flags."""

    study: Study
    options: StudyOptions
    flags: Mapping[str, Scalar]


class RunCommand(GroupedCommand):
    """Reads its own options, then the flags of the bench that they name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of the command; the flags and the script become parameters as well."""
        parts = divide(args, self.get_params(ctx))
        # Help that comes last finds `--bench` parsed, and shows the flags of that bench.
        ordered = sorted(parts.options, key=lambda given: given[0] in HELP_NAMES)
        super().parse_args(ctx, list(chain.from_iterable(ordered)))
        ctx.params |= {"flags": parts.flags, "script": parts.script}
        return []

    def groups(self, ctx: click.Context) -> Mapping[str, Sequence[click.Option]]:
        """The options of a bench or of a study, then its flags."""
        # Without `--bench` its default has not been parsed yet when `--help` is.
        entry: Entry = ctx.params.get("bench") or _entry(DEFAULT_BENCH)
        if isinstance(entry, Study):
            groups = {"what runs": (BENCH, _LIST), **STUDY_GROUPS}
        else:
            groups = dict(super().groups(ctx))
        if entry.flags:
            groups[f"flags of {entry.name}"] = tuple(map(flag_option, entry.flags))
        return groups

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The usage line of `kernbench`, as this is its default command."""
        formatter.write_usage(
            "kernbench", f"[{' | '.join(COMMANDS)}] [options] [SCRIPT [arguments of the script]]"
        )


def parse_flags(context: click.Context, entry: Entry, arguments: Sequence[str]) -> dict[str, Any]:
    """The values of the flags of a bench or study."""
    own = option_names(context.command.get_params(context))
    for flag in entry.flags:
        if flag.option in own:
            raise UsageError(f"{entry.name} has a flag with the name of the option --{flag.name}")
    command = click.Command(
        entry.name,
        params=[flag_option(flag) for flag in entry.flags],
        add_help_option=False,
        context_settings={"allow_extra_args": True},
    )
    parsed = command.make_context(entry.name, list(arguments), parent=context)
    if parsed.args:
        _refuse_script(parsed.args[0])
    return parsed.params


def _entry(name: str) -> Entry:
    context = cli_context(click.get_current_context())
    return context.bench(name) or find_entry(name, context.entries)


BENCH = option("--bench", "NAME", _entry, "bench or study to run, by name or number", DEFAULT_BENCH)
# An eager option is parsed before the others: `--help` and errors depend on the bench.
BENCH.is_eager = True
_LIST = click.Option(["--list"], is_flag=True, help="list the benches and studies, and end")
# Options that are more likely misplaced than meant for a script.
_BEFORE_A_SCRIPT = frozenset({"--sips", "--procs", "--topology", "--no-data", "--no-trace"})
_CHECK = click.Option(
    ["--check-races"],
    is_flag=True,
    help="then find races and undefined values, as `kernbench check` does; exit code 1 with any",
)
GROUPS = {
    "what runs": (*SIMULATION_GROUPS["what runs"], BENCH, _LIST),
    "a script, as with torchrun": TORCHRUN,
    **{title: options for title, options in SIMULATION_GROUPS.items() if title != "what runs"},
    "what is printed": (*SIMULATION_GROUPS["what is printed"], _CHECK),
}


@click.pass_context
def _run(context: click.Context, /, *, list: bool, script: tuple[str, ...], **options: Any) -> int:  # noqa: A002 - the name of the option
    cli = cli_context(context)
    if list:
        refuse_arguments(script)
        print_entries(cli.entries())
        return 0
    request = request_of(context, script=script, **options)
    _name_misplaced_options(script)
    return cli.execute(request)


def _name_misplaced_options(script: tuple[str, ...]) -> None:
    """Name an option of the simulation behind a script, where it is an argument of the script."""
    for argument in script[1:]:
        if argument.partition("=")[0] in _BEFORE_A_SCRIPT:
            click.echo(
                f"kernbench: note: {argument} behind {script[0]} is an argument of the script; "
                "options of the simulation stand before it",
                err=True,
            )


def request_of(
    context: click.Context,
    *,
    bench: Entry,
    flags: tuple[str, ...],
    script: tuple[str, ...],
    **options: Any,
) -> RunRequest | StudyRequest:
    """The request of a command line of `run`. Raises `UsageError`."""
    if script or not isinstance(bench, Study):
        _refuse_point_options(context)
    for each in POINT_OPTIONS:
        options.pop(str(each.name), None)
    checks = bool(options.pop("check_races", False))
    refuse_options(flags)
    start = script_start(options)
    if script:
        if flags or is_given(context, "bench"):
            _refuse_script(script[0])
        options["sips"] = start.sips(options["sips"])
        program = RunRequest(
            SimulationOptions(**options), argv=script[1:], as_cuda=start.as_cuda, checks=checks
        )
        if start.module:
            return replace(program, module=module_name(script[0]))
        return replace(program, script=_script_path(script[0]))
    values = parse_flags(context, bench, flags)
    start.refuse()
    if isinstance(bench, Study):
        if checks:
            raise UsageError(f"--check-races is not an option of the study {bench.name}")
        return StudyRequest(bench, _study_options(context, bench, values), values)
    return RunRequest(SimulationOptions(**options), bench=bench, flags=values, checks=checks)


def _study_options(
    context: click.Context, study: Study, flags: Mapping[str, Scalar]
) -> StudyOptions:
    """The options that a study takes; raises `UsageError` for any other that is given."""
    taken = [each.name for each in chain.from_iterable(STUDY_GROUPS.values())]
    values = context.params
    for each in chain.from_iterable(SIMULATION_GROUPS.values()):
        if each.name and each.name not in taken and is_given(context, each.name):
            given = (each.secondary_opts if values[each.name] is False else each.opts)[0]
            raise UsageError(f"{given} is not an option of the study {study.name}")
    # The default of a study differs from that of a simulation.
    timeout = values["timeout"] if is_given(context, "timeout") else STUDY_TIMEOUT_S
    # A study has one process for each core unless a number is given.
    procs = None if values["procs"] == AUTO else values["procs"]
    return StudyOptions(
        topology=values["topology"],
        procs=procs,
        timeout_s=timeout,
        out=values["out"],
        on=values["on"],
        resume=values["resume"],
        point_timeout_s=values["point_timeout"],
        point_memory_bytes=values["point_memory"] or 0,
        changed=tuple(each.option for each in study.flags if flags[each.name] != each.default),
    )


def _refuse_point_options(context: click.Context) -> None:
    for each in POINT_OPTIONS:
        if is_given(context, str(each.name)):
            raise UsageError(
                f"{each.opts[0]} belongs to commands that make many simulations: a study, sweep, "
                "validate"
            )


def _script_path(argument: str) -> Path:
    script = Path(argument)
    if script.is_file():
        return script
    # An argument that could be the name of a command is more likely a misspelt one than a file.
    if script.suffix or len(script.parts) > 1:
        raise UsageError(f"no such script: {argument!r}")
    if argument in COMMANDS:
        raise UsageError(f"the command {argument!r} comes before the options")
    raise UsageError(f"unknown command {argument!r}{nearest(argument, COMMANDS)}")


def _refuse_script(argument: str) -> None:
    raise UsageError(f"either a bench or a script: {argument!r} comes with bench options")


run_command = RunCommand(
    GROUPS,
    name="run",
    callback=_run,
    help="Simulate multi-chip AI accelerators: one process per SIP, the same result for any number "
    "of processes.",
    epilog=_EXAMPLES,
)
# Those of a study, which `--bench` may name. The help of a bench does not show them.
run_command.params.extend(POINT_OPTIONS)
