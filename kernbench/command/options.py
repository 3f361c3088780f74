"""The options that commands share, in groups: their names, types, defaults and help texts."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, nan
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kernbench.points.task import LOCAL
from runtime.core.bench_registry import Entry, Flag

_LARGEST_SIZE = (1 << 63) - 1
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

DEFAULT_BENCH = "ccl-allreduce"
HELP_NAMES = ("-h", "--help")
CONTEXT_SETTINGS: Mapping[str, Any] = {
    "help_option_names": list(HELP_NAMES),
    "max_content_width": 110,
}


@dataclass(frozen=True)
class SimulationOptions:
    """Options of one simulation; each field is the option of the same name.

    `procs` is a number, `AUTO`, or None for one process for each SIP.
    """

    sips: int | None = None
    procs: int | str | None = None
    topology: Path | None = None
    ccl: Path | None = None
    data: bool = True
    verify_data: bool = False
    out: Path | None = None
    trace: bool = True
    timeout: float | None = None
    jitter_ms: float = 0.0
    jitter_seed: int = 0
    delay_us: float | None = None
    verbose: bool = False


@dataclass(frozen=True)
class CliContext:
    """Context of the commands, which click passes as `obj`.

    `entries` returns the benches and studies that exist; importing them takes time, so only
    commands that need them call it. `bench` returns one bench by its name, or None where only
    `entries` can find it. `execute` carries out the request that a command has read
    (`RunRequest`, `StudyRequest` or `PerfRequest`) and returns the exit code.
    """

    entries: Callable[[], Sequence[Entry]]
    execute: Callable[[object], int]
    bench: Callable[[str], Entry | None] = lambda _: None


def cli_context(context: click.Context) -> CliContext:
    """The `CliContext` of this command line."""
    own = context.find_object(CliContext)
    assert own is not None, "main passes it to the group"
    return own


def is_given(context: click.Context, name: str) -> bool:
    """Whether the user gave the option, as opposed to its default."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


LARGEST_INTEGER = (1 << 63) - 1


def number(
    kind: Callable[[Any], float],
    expected: str,
    least: float = -inf,
    most: float = sys.float_info.max,
) -> Callable[[Any], float]:
    """A type for click: a number from `least` to `most`; `expected` describes it.

    An integer is less than 2^63 in size, since it is sent to the LPs in 64 bits.
    """

    def read(text: Any) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = nan
        if kind is int and abs(value) > LARGEST_INTEGER:
            raise click.BadParameter(f"expected {expected} which fits 64 bits, got {text!r}")
        if not least <= value <= most:
            raise click.BadParameter(f"expected {expected}, got {text!r}")
        return value

    return read


COUNT = number(int, "an integer of at least 1", 1)
AUTO = "auto"
"""The value of `--procs` for at most as many processes as there are cores."""


def procs(text: Any) -> float | str:
    """The type of `--procs` for click: a count, or `AUTO`."""
    if text == AUTO:
        return AUTO
    return number(int, f"an integer of at least 1 or {AUTO!r}", 1)(text)


def memory_size(text: Any) -> int:
    """The type of a number of bytes for click: an integer, or with K, M or G."""
    try:
        return text if isinstance(text, int) else parse_size(text)
    except ValueError:
        raise click.BadParameter(
            f"expected a number of bytes such as 512M or 2G, got {text!r}"
        ) from None


NATURAL = number(int, "an integer of at least 0", 0)
_DURATION = number(float, "a number of at least 0", 0)
FILE = click.Path(path_type=Path)
_FLAG_TYPES: Mapping[type, tuple[Any, str]] = {
    bool: (bool, ""),
    int: (number(int, "an integer"), "N"),
    float: (number(float, "a number"), "X"),
    str: (str, "NAME"),
}


def option(
    names: str | Sequence[str], metavar: str, kind: Any, text: str, default: object = None
) -> click.Option:
    """An option with a value. `names` may end with the name of the parameter, as click has it."""
    return click.Option(
        [names] if isinstance(names, str) else list(names),
        metavar=metavar,
        type=kind,
        default=default,
        show_default=default is not None,
        help=text,
    )


def flag_option(flag: Flag) -> click.Option:
    """The option for one flag of a bench."""
    kind, metavar = _FLAG_TYPES[flag.kind]
    name = flag.option
    return click.Option(
        # The first name is the parameter's; without it click would derive one from the option.
        [flag.name, f"{name}/--no-{name[2:]}" if flag.kind is bool else name],
        type=kind,
        metavar=metavar or None,
        default=flag.default,
        show_default=flag.default != "",
        help=flag.help,
    )


def option_names(options: Sequence[click.Parameter]) -> list[str]:
    """All names of the options, those that switch a flag off included."""
    return [name for each in options for name in (*each.opts, *each.secondary_opts)]


TOPOLOGY = option("--topology", "FILE", FILE, "hardware  [default: the topology.yaml of kernbench]")
SIMULATION_GROUPS: Mapping[str, tuple[click.Option, ...]] = {
    "what runs": (
        option(
            "--sips",
            "N",
            COUNT,
            "number of SIPs, one rank each  [default: the topology file's count]",
        ),
    ),
    "what is simulated": (
        TOPOLOGY,
        option("--ccl", "FILE", FILE, "collectives  [default: the ccl.yaml of kernbench]"),
        click.Option(
            ["--data/--no-data"],
            default=True,
            help="with real data, or the timing alone, which is the same [default: data]",
        ),
        click.Option(
            ["--verify-data"],
            is_flag=True,
            help="execute the op log once more in numpy and compare it with the simulated memories",
        ),
    ),
    "how it runs": (
        option(
            "--procs",
            "P",
            procs,
            "processes that share the SIPs; auto: one for each core at most  "
            "[default: one for each SIP]",
        ),
        option(
            "--timeout",
            "S",
            _DURATION,
            "longest silence of a process in seconds, 0: no limit; replaces the timeouts of "
            "process groups  [default: 60 + the longest of them]",
        ),
        option(
            "--jitter-ms",
            "MS",
            _DURATION,
            "hold every frame back up to MS ms: results must not change",
            0,
        ),
        option("--jitter-seed", "SEED", NATURAL, "seed of the delays of --jitter-ms", 0),
        option(
            "--delay-us",
            "US",
            _DURATION,
            "deliver every frame US us after it was sent, like a network between hosts; 0: only "
            "count the frames",
        ),
    ),
    "what is kept": (
        option(
            "--out",
            "DIR",
            FILE,
            "where run.json, oplog.jsonl and trace.json go  [default: runs/NNNN-NAME]",
        ),
        click.Option(
            ["--trace/--no-trace"],
            default=True,
            help="with oplog.jsonl and trace.json, or run.json alone, for millions of operations "
            "[default: trace]",
        ),
    ),
    "what is printed": (
        click.Option(
            ["--verbose"],
            is_flag=True,
            help="all lines at the end: also events, messages between processes, the critical "
            "path, the busiest links and engines, the least possible time",
        ),
    ),
}
"""The options of one simulation: the fields of `SimulationOptions`."""
ON_OPTION = option(
    "--on",
    "ENGINE",
    str,
    "where simulations are made: local, dask:ADDRESS, ray:ADDRESS, or module:factory of any "
    "concurrent.futures.Executor",
    LOCAL,
)
POINT_OPTIONS = (
    ON_OPTION,
    click.Option(
        ["--resume/--no-resume"],
        default=None,
        help="keep the rows of an earlier start, or measure all again  [default: go on with what "
        "was interrupted]",
    ),
    option(
        "--point-timeout",
        "S",
        _DURATION,
        "longest wall time of one simulation in seconds, 0: no limit",
        0,
    ),
    option(
        "--point-memory",
        "SIZE",
        memory_size,
        "most memory of each process of a simulation, such as 2G  [default: no limit]",
    ),
)
"""The options of commands that make many simulations: with `--procs` and `--timeout`, the fields of
`PointOptions`."""
STUDY_TIMEOUT_S = 600.0
STUDY_GROUPS: Mapping[str, tuple[click.Option, ...]] = {
    "what is simulated": (TOPOLOGY,),
    "how it runs": (
        option("--procs", "P", COUNT, "processes that simulate  [default: one for each core]"),
        option(
            "--timeout",
            "S",
            _DURATION,
            "longest wait for a result in seconds, 0: no limit",
            int(STUDY_TIMEOUT_S),
        ),
        *POINT_OPTIONS,
    ),
    "what is kept": (
        option("--out", "DIR", FILE, "where the results go  [default: the study's own choice]"),
    ),
}
"""The options of a study, which makes many simulations and sets the other options itself."""


class GroupedCommand(click.Command):
    """A command whose help shows its options in titled groups."""

    def __init__(self, groups: Mapping[str, Sequence[click.Option]], **rest: Any) -> None:
        super().__init__(context_settings=dict(CONTEXT_SETTINGS), **rest)
        self.params[:0] = chain.from_iterable(groups.values())
        self._groups = groups

    def groups(self, ctx: click.Context) -> Mapping[str, Sequence[click.Option]]:  # noqa: ARG002
        """Title -> the options below it."""
        return self._groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section for each group."""
        own = self.get_help_option(ctx)
        for title, options in {**self.groups(ctx), "other": [own] if own else []}.items():
            with formatter.section(title):
                formatter.write_dl(
                    [record for each in options if (record := each.get_help_record(ctx))]
                )


def parse_size(text: str) -> int:
    """A number of bytes, with K, M or G for powers of 1024 as in nccl-tests.

    Raises `ValueError` for anything else, for less than one byte and for 2^63 bytes and more.
    """
    match = _SIZE.fullmatch(text.strip())
    size = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    # Compared as a float: a number of 400 digits is infinite, which has no integer.
    if not 1 <= size < _LARGEST_SIZE:
        raise ValueError(text)
    return int(size)
