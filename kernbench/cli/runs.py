"""`kernbench runs`: the run directories of a folder; each subcommand is in a module of its own."""

from pathlib import Path
from typing import Any

import click

from kernbench.cli.options import CONTEXT_SETTINGS

DEFAULT_FOLDER = Path("runs")


class RunsGroup(click.Group):
    """The group of the subcommands; one is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature of click
        """The names of the subcommands."""
        return ["list", "prune"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The subcommand of that name, None where there is none."""
        match cmd_name:
            case "list":
                from kernbench.cli.runs_list import runs_list_command as command
            case "prune":
                from kernbench.cli.runs_prune import runs_prune_command as command
            case _:
                return None
        return command


def folder_argument(function: Any) -> Any:
    """The argument FOLDER of a subcommand."""
    return click.argument(
        "folder", required=False, type=click.Path(path_type=Path), default=DEFAULT_FOLDER
    )(function)


runs_command = RunsGroup(
    name="runs",
    context_settings=dict(CONTEXT_SETTINGS),
    help="List the run directories in a folder, or remove the oldest.",
)
