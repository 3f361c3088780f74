"""The completion of a shell, as click calculates it from the words of a command line."""

import pytest
from click.shell_completion import BashComplete

from kernbench.cli.group import kernbench_group
from kernbench.command.commands import COMMANDS


def completed(words: list[str], incomplete: str) -> list[str]:
    shell = BashComplete(kernbench_group(), {}, "kernbench", "_KERNBENCH_COMPLETE")
    return [item.value for item in shell.get_completions(words, incomplete)]


@pytest.mark.slow
def test_a_command_line_may_begin_with_any_command():
    assert completed([], "") == list(COMMANDS)


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ([], "pr", ["probe"]),
        ([], "--si", ["--sips"]),
        (["run"], "--si", ["--sips"]),
        (["why", "runs/one"], "--wh", ["--what-if"]),
        (["runs"], "pr", ["prune"]),
    ],
)
def test_commands_and_options_are_completed(words: list[str], incomplete: str, expected: list[str]):
    assert completed(words, incomplete) == expected
