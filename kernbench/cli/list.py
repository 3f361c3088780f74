"""`kernbench list`: the benches and studies with their numbers."""

from collections.abc import Sequence

import click

from kernbench.command.options import CONTEXT_SETTINGS, cli_context
from runtime.core.bench_registry import Entry
from runtime.core.errors import UsageError


@click.command(name="list", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("arguments", nargs=-1, metavar="")
@click.pass_context
def list_command(context: click.Context, arguments: tuple[str, ...]) -> int:
    """List the benches and studies: number, name and description."""
    refuse_arguments(arguments)
    print_entries(cli_context(context).entries())
    return 0


def refuse_arguments(arguments: Sequence[str]) -> None:
    """Raise `UsageError` if there are any: `list` and `--list` stand alone."""
    if arguments:
        raise UsageError(f"'list' takes no argument, got {arguments[0]!r}")


def print_entries(entries: Sequence[Entry]) -> None:
    """Print one line for each entry, numbered from 1."""
    for position, entry in enumerate(entries, start=1):
        click.echo(f"{position:3}  {entry.name:<24} {entry.description}")
