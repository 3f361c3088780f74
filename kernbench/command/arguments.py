"""Divides a command line into the options of the command, the flags of a bench, and a script.

The options of a command are known before its arguments are read, the flags of a bench only after
its name. Both may be mixed, and all arguments after a script belong to the script. One scan from
left to right decides, from the names of the command's options alone, to which part an argument
belongs:

- an option of the command belongs to the command, together with its value;
- any other option is a flag of the bench;
- after a flag, an argument that is no option belongs to the flags: it is the value of one;
- otherwise the first argument that is no option, or that follows `--`, is the script.

The last two rules agree with each other, because a script takes no flags of a bench.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click


@dataclass(frozen=True)
class ArgumentParts:
    """The parts of a command line. `dashed` is true where `--` precedes the script."""

    options: tuple[tuple[str, ...], ...]
    """Options of the command, each with its value."""
    flags: tuple[str, ...]
    script: tuple[str, ...]
    """The script and its arguments, empty if there is none."""
    dashed: bool = False


def divide(arguments: Sequence[str], known: Iterable[click.Parameter]) -> ArgumentParts:
    """The parts of `arguments` for a command with the `known` options."""
    takes_value = {
        name: isinstance(each, click.Option) and not each.is_flag
        for each in known
        for name in (*each.opts, *each.secondary_opts)
    }
    options: list[tuple[str, ...]] = []
    flags: list[str] = []
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        name, equals, _ = argument.partition("=")
        if argument == "--":
            # After flags this is an error, which the command reports with the first argument.
            return ArgumentParts(tuple(options), tuple(flags), tuple(rest), dashed=True)
        if name in takes_value:
            has_value = takes_value[name] and not equals and rest
            options.append((argument, rest.popleft()) if has_value else (argument,))
        elif flags or (argument.startswith("-") and argument != "-"):
            flags.append(argument)
        else:
            return ArgumentParts(tuple(options), tuple(flags), (argument, *rest))
    return ArgumentParts(tuple(options), tuple(flags), ())
