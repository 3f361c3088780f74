"""Turns the errors of click into one line that names the nearest valid option."""

from collections.abc import Sequence
from itertools import chain

import click

from kernbench.cli.run import RunCommand
from kernbench.command.options import CliContext, flag_option, option_names
from runtime.core.bench_registry import Study
from runtime.core.errors import UsageError, nearest

_OF_MESH = (
    "mesh",
    "pattern",
    "load",
    "flits",
    "flow-control",
    "router-stages",
    "vcs",
    "buffer-flits",
)
MOVED = {
    ("validate", "--full"): "python -m tests.fidelity --full",
    **{("validate", f"--{option}"): "python -m tests.fidelity.mesh.traffic" for option in _OF_MESH},
}
"""Programs of a checkout that do what an option of a command did, by (command, option)."""


def usage_error(error: click.UsageError, command: str, arguments: Sequence[str]) -> UsageError:
    """The error of the command in one line, which begins with its name unless that is `run`."""
    problem = _problem(error, arguments)
    return UsageError(problem if command == "run" else f"{command}: {problem}")


def _problem(error: click.UsageError, arguments: Sequence[str]) -> str:
    match error:
        case click.NoSuchOption(ctx=click.Context() as context):
            given = _as_given(error.option_name, arguments).partition("=")[0]
            return _unknown_option(given, context)
        case click.BadOptionUsage():
            given, equals, value = _as_given(error.option_name, arguments).partition("=")
            return f"{given} takes no value, got {value!r}" if equals else f"{given} needs a value"
        case click.BadParameter(param=click.Option() as option):
            return f"{option.opts[0]}: {error.message}"
        case _:
            return error.format_message()


def _unknown_option(given: str, context: click.Context) -> str:
    moved = MOVED.get((context.command.name or "", given))
    if moved is not None:
        return f"{given} is not an option any more; in a checkout: {moved}"
    options = [each for each in context.command.params if isinstance(each, click.Option)]
    known = option_names(options)
    parent = context.parent
    if parent is not None and isinstance(parent.command, RunCommand):
        # The context is that of the flags of a bench: they stand beside the options of `run`.
        entry = parent.params["bench"]
        if given in _flags_of_all(context):
            kind = "study" if isinstance(entry, Study) else "bench"
            return f"{given} is not an option of the {kind} {entry.name}"
        known += option_names(parent.command.get_params(parent))
        known = [name for name in known if name.startswith("--")]
    return f"unknown option {given!r}{nearest(given, known)}"


def _flags_of_all(context: click.Context) -> list[str]:
    own = context.find_object(CliContext)
    entries = own.entries() if own else ()
    flags = chain.from_iterable(entry.flags for entry in entries)
    return option_names([flag_option(flag) for flag in flags])


def _as_given(name: str, arguments: Sequence[str]) -> str:
    """The argument in which click found the option: with its value, or `-sips` for `-s`."""
    long = name.startswith("--")
    return next(
        (
            argument
            for argument in arguments
            if (argument.partition("=")[0] == name if long else argument.startswith(name))
        ),
        name,
    )
