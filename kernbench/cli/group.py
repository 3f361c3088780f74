"""The commands of `kernbench`, each in a module of its own; `run` is the default one.

`kernbench --sips 4` is `kernbench run --sips 4`. Options of a simulation may precede the command
`perf`, so that the arguments of nccl-tests can follow it unchanged.
"""

from importlib import import_module
from importlib.metadata import version
from itertools import chain
from platform import python_version
from typing import TYPE_CHECKING, Any

import click

from kernbench.command.arguments import divide
from kernbench.command.commands import COMMANDS, DEFAULT_COMMAND
from kernbench.command.options import SIMULATION_GROUPS
from runtime.core.errors import UsageError
from runtime.core.output import ReaderEndedError, print_lines

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERSION = "--version"
_ARGUMENTS = "kernbench.arguments"
"""Key of the whole command line in the metadata of the context: messages quote it."""


class KernbenchGroup(click.Group):
    """The group of all commands; a command is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature of click
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"kernbench.cli.{cmd_name}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command first, then let click parse."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        # A shell completes what may become a command, or an option of the default one.
        is_completed = ctx.resilient_parsing and not args
        return super().parse_args(ctx, args if is_completed else _command_first(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands, and the options of the default one, which may stand first."""
        default = self.get_command(ctx, DEFAULT_COMMAND)
        assert default is not None
        # A command keeps the help option that its first context has named, `-h` included.
        context = click.Context(default, **default.context_settings)
        options = default.shell_complete(context, incomplete)
        return [*super().shell_complete(ctx, incomplete), *options]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of click becomes a `UsageError` in one line."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            from kernbench.cli.usage import usage_error

            name = ctx.invoked_subcommand or DEFAULT_COMMAND
            raise usage_error(error, name, ctx.meta[_ARGUMENTS]) from error
        except BrokenPipeError as error:
            # click would make exit code 1 of it.
            raise ReaderEndedError from error


def _command_first(arguments: list[str]) -> list[str]:
    """The arguments in the order `COMMAND [options] ...`."""
    if arguments and arguments[0] in (*COMMANDS, VERSION):
        return arguments
    parts = divide(arguments, chain.from_iterable(SIMULATION_GROUPS.values()))
    if parts.flags or parts.dashed or not parts.script or parts.script[0] not in COMMANDS:
        return [DEFAULT_COMMAND, *arguments]
    command, *rest = parts.script
    if command != "perf":
        raise UsageError(f"the command {command!r} comes before the options")
    return [command, *chain.from_iterable(parts.options), *rest]


def arguments_of_command(context: click.Context) -> tuple[str, ...]:
    """The command line of the command of `context`, behind its name."""
    return tuple(_command_first(list(context.meta[_ARGUMENTS]))[1:])


def kernbench_group() -> click.Group:
    """The group, ready to be called with a `CliContext` as `obj`."""
    return KernbenchGroup(
        name="kernbench",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
        params=[
            click.Option(
                [VERSION], is_flag=True, is_eager=True, expose_value=False, callback=_print_version
            )
        ],
    )


def _print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - the signature of click
    """Print the versions of kernbench and Python, and the core that would run; then end."""
    if value:
        from runtime.core.compiled.choice import CORE

        packages = f"kernbench {version('kernbench')}, simpy {version('simpy')}"
        print_lines([f"{packages}, Python {python_version()}, core {CORE}\n"])
        ctx.exit()
