"""The parameters of a sweep: keys of the configuration files, arguments, the number of SIPs.

Each has a name as the user wrote it, which heads its column, and the values that it takes. One with
a single value is fixed: it belongs to every point and has no column.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, cast

import click
from msgspec import Struct

from kernbench.command.options import COUNT, flag_option
from kernbench.sweep.keys import ConfigFile, ConfigTexts, find_key
from kernbench.sweep.values import Value, listed, plain, scalar
from runtime.core.bench_registry import Bench, Flag
from runtime.core.errors import UsageError, nearest

COUNT_KEY = "system.sips.count"
SIPS = "--sips"


class ParameterKind(StrEnum):
    """Target of a parameter: a key of a file, a flag, an argument, or the number of SIPs."""

    TOPOLOGY = "topology"
    CCL = "ccl"
    FLAG = "flag"
    ARGUMENT = "argument"
    SIPS = "sips"


class Parameter(Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter. `target` is its full key path, the name of its flag, or that of its argument.

    The value True of an argument stands for the argument alone, without a value.
    """

    name: str
    kind: ParameterKind
    target: str
    values: tuple[Value, ...]


def key_parameter(texts: ConfigTexts, text: str) -> Parameter:
    """The parameter of `--set KEY=VALUES`.

    Raises `UsageError` or `ConfigError`, one line, for a wrong key and for wrong values.
    """
    given, equals, values_text = text.partition("=")
    given = given.strip()
    if not (given and equals):
        raise UsageError(f"--set {text}: expected KEY=VALUES, as in ucie.bw_gbs=64,128,256")
    file, key = find_key(texts, given)
    values = tuple(scalar(item) for item in listed(f"--set {given}", values_text))
    _require_distinct(f"--set {given}", values)
    texts.require_valid(file, key, {f"--set {given}={plain(value)}": value for value in values})
    kind = ParameterKind.TOPOLOGY if file is ConfigFile.TOPOLOGY else ParameterKind.CCL
    return Parameter(given, kind, key, values)


def sips_parameter(text: str) -> Parameter:
    """The parameter of `--sips VALUES`."""
    values = [_converted(SIPS, item, COUNT) for item in listed(SIPS, text)]
    _require_distinct(SIPS, values)
    return Parameter(SIPS, ParameterKind.SIPS, COUNT_KEY, tuple(values))


def argument_parameter(text: str, bench: Bench | None) -> Parameter:
    """The parameter of `--arg --NAME=VALUES`, or of `--arg --NAME` without values: a flag of the
    bench, or an argument of a script.
    """
    name, equals, values_text = text.partition("=")
    if not name.startswith("-") or not name.strip("-"):
        raise UsageError(f"--arg {text}: expected --NAME=VALUES, as in --size=256,512")
    items = listed(f"--arg {name}", values_text) if equals else []
    if bench is not None:
        flag = _flag(bench, name)
        values = [_flag_value(flag, item) for item in items or ["true"]]
        parameter = Parameter(name, ParameterKind.FLAG, flag.name, tuple(values))
    else:
        values = [_as_written(item) for item in items] or [True]
        parameter = Parameter(name, ParameterKind.ARGUMENT, name, tuple(values))
    _require_distinct(f"--arg {name}", parameter.values)
    return parameter


def require_different(parameters: Iterable[Parameter]) -> None:
    """Raise `UsageError` for two parameters that set the same."""
    # The number of SIPs is a key as well.
    targets = dict[str, Parameter]()
    for each in parameters:
        other = targets.setdefault(each.target, each)
        if other is each:
            continue
        if each.name == other.name:
            raise UsageError(f"{each.name} is given twice")
        raise UsageError(f"{other.name} and {each.name} are the same key, {each.target}")


def _require_distinct(option: str, values: Sequence[Value]) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise UsageError(f"{option}: the value {plain(value)} is given twice")


def _flag(bench: Bench, name: str) -> Flag:
    known = {flag.option: flag for flag in bench.flags}
    if name not in known:
        raise UsageError(f"--arg {name}: {bench.name} has no such flag{nearest(name, known)}")
    return known[name]


def _flag_value(flag: Flag, text: str) -> Value:
    if flag.kind is not bool:
        return _converted(f"--arg {flag.option}", text, flag_option(flag).type)
    value = scalar(text)
    if not isinstance(value, bool):
        raise UsageError(f"--arg {flag.option}={text}: expected true or false")
    return value


def _converted(option: str, text: str, kind: Any) -> Value:
    # click leaves the types of its values open.
    converter = cast("Any", click.types.convert_type(kind))
    try:
        value: Value = converter.convert(text, None, None)
    except click.BadParameter as error:
        raise UsageError(f"{option}={text}: {error.message}") from error
    return value


def _as_written(text: str) -> Value:
    """The number in `text` if the program is given the same characters for it, else the text."""
    value = scalar(text)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and str(value) == text else text
