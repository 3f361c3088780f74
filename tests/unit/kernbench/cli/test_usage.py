"""Options that a command no longer has: the error names the program that has them now."""

from importlib import import_module

import click
import pytest

from kernbench.cli.main import call
from kernbench.cli.usage import MOVED
from kernbench.command.options import option_names
from runtime.core.errors import UsageError


@pytest.mark.parametrize(("command", "option"), MOVED)
def test_an_option_that_has_moved_is_refused_with_the_program_that_has_it(
    command: str, option: str
):
    with pytest.raises(UsageError) as caught:
        call([command, option, "1"])
    program = MOVED[command, option]
    assert str(caught.value) == (
        f"{command}: {option} is not an option any more; in a checkout: {program}"
    )


@pytest.mark.parametrize(("command", "option"), MOVED)
def test_the_program_has_the_option(command: str, option: str):
    _, _, name, *given = MOVED[command, option].split()
    package = f"{name}.__main__" if name == "tests.fidelity" else name
    program = import_module(package).main
    assert isinstance(program, click.Command)
    # All that the program measures is on the mesh: it needs no option for that.
    needless = {"--mesh"} if name == "tests.fidelity.mesh.traffic" else set[str]()
    assert {option, *given} - needless <= set(option_names(program.params))
