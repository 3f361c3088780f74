"""The commands that look at the model itself: programs of their own, which read their words with click."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from runtime.core.errors import UsageError, nearest

TOOLS: Mapping[str, str] = {
    "probe": "kernbench.cli.probe",
    "validate": "kernbench.cli.validate",
}
"""Command -> the module that has it as `COMMAND`, a click command that returns the exit code."""
PERF = "perf"
"""The command that is no tool: it runs a program on every rank, with the options of every run."""


def run_tool(name: str, words: Sequence[str]) -> int:
    """Run the command `name`; returns the exit code."""
    return run_command(import_module(TOOLS[name]).COMMAND, name, words) or 0


def run_command(command: click.Command, name: str, words: Sequence[str]) -> Any:
    """What `command` returns for its words; raises `UsageError` in one line for those that it does not know."""
    try:
        return command.main(list(words), f"kernbench {name}", standalone_mode=False)
    except click.NoSuchOption as error:
        known = [
            option
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        ]
        raise UsageError(
            f"{name}: unknown option {error.option_name!r}{nearest(error.option_name, known)}"
        ) from error
    except click.BadParameter as error:
        option = error.param.opts[0] if error.param else name
        raise UsageError(f"{name}: {option}: {error.message}") from error
    except click.UsageError as error:
        raise UsageError(f"{name}: {error.format_message()}") from error
