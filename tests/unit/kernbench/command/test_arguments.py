"""One scan divides a command line into options, flags of a bench, and a script."""

from itertools import chain

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.command.arguments import ArgumentParts, divide

KNOWN = (
    click.Option(["--sips"]),
    click.Option(["-o", "--out"]),
    click.Option(["--data/--no-data"]),
    click.Option(["--list"], is_flag=True),
)


def parts_of(line: str) -> ArgumentParts:
    return divide(line.split(), KNOWN)


@pytest.mark.parametrize(
    ("line", "options", "flags", "script"),
    [
        ("--sips 4 train.py --sips 2 --", [("--sips", "4")], "", "train.py --sips 2 --"),
        ("--sips=4 --no-data -o x", [("--sips=4",), ("--no-data",), ("-o", "x")], "", ""),
        ("--m 3 --sips 4 --relu", [("--sips", "4")], "--m 3 --relu", ""),
        ("--m 3 train.py", [], "--m 3 train.py", ""),
        ("--list --m=3", [("--list",)], "--m=3", ""),
        ("--out --sips 4", [("--out", "--sips")], "", "4"),
        ("--sips", [("--sips",)], "", ""),
        ("- x", [], "", "- x"),
    ],
)
def test_each_argument_belongs_to_one_part(
    line: str, options: list[tuple[str, ...]], flags: str, script: str
):
    assert parts_of(line) == ArgumentParts(
        tuple(options), tuple(flags.split()), tuple(script.split())
    )


def test_what_follows_two_dashes_is_a_script():
    assert parts_of("--sips 4 -- --list x") == ArgumentParts(
        (("--sips", "4"),), (), ("--list", "x"), dashed=True
    )


@given(
    st.lists(st.sampled_from(["--sips", "4", "--m", "--data", "-o", "x.py", "--out=y", "--z=1"]))
)
def test_every_argument_is_in_exactly_one_part(arguments: list[str]):
    parts = divide(arguments, KNOWN)
    together = [*chain.from_iterable(parts.options), *parts.flags, *parts.script]
    assert sorted(together) == sorted(arguments)
