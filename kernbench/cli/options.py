"""The command line as a table of options, by group. Click reads the words and prints the help.

The flags of a bench are options of the same command, so a first look at the words finds out which bench it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf, nan
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kernbench.cli.tools import PERF, TOOLS
from runtime.core.bench_registry import Bench, Entry, Flag, Scalar, Study
from runtime.core.errors import UsageError, nearest

DEFAULT_BENCH = "ccl-allreduce"
COMMANDS: Mapping[str, Sequence[str]] = {"run": (), "list": ("--list",)}
"""The commands and the options they stand for: to run is what is done anyway."""
_COMMAND_WORDS = (*COMMANDS, *TOOLS, PERF)


@dataclass(frozen=True)
class Invocation:
    """A run that the command line asks for, of a bench or a study with its flags or of a script with its words.

    The other fields are the options of the same names.
    """

    bench: Bench | None = None
    flags: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    study: Study | None = None
    script: Path | None = None
    argv: tuple[str, ...] = ()
    sips: int | None = None
    procs: int | None = None
    topology: Path | None = None
    ccl: Path | None = None
    data: bool = True
    verify_data: bool = False
    out: Path | None = None
    timeout: float = 60.0
    jitter_ms: float = 0.0
    jitter_seed: int = 0


def parse(words: Sequence[str], benches: Sequence[Entry]) -> Invocation | None:
    """The run that `words` ask for, or None where they ask for a text (help, list), which has been printed.

    Raises `UsageError` in one line, with the nearest known word.
    """
    bench = _first_look(words, benches)
    options = [*COMMANDS.get(words[0], words[:1]), *words[1:]] if words else []
    try:
        asked = _command(bench).main(options, "kernbench", standalone_mode=False, obj=benches)
    except click.UsageError as error:
        raise UsageError(_problem(error, words, bench, benches)) from error
    # Where the help has been printed, click returns an exit code.
    return asked if isinstance(asked, Invocation) else None


def words_of_perf(words: Sequence[str]) -> list[str] | None:
    """The words of the command `perf`, options that come before it included; None where that is not the command."""
    options = [option for group in GENERAL_GROUPS.values() for option in group]
    rest = click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    look = click.Command(
        "look", params=[*options, rest], add_help_option=False, context_settings=settings
    )
    behind: tuple[str, ...] = look.make_context("look", list(words), resilient_parsing=True).params[
        "rest"
    ]
    before = words[: len(words) - len(behind)]
    return [*before, *behind[1:]] if behind[:1] == (PERF,) and "--" not in before else None


def find_bench(name: str, benches: Sequence[Entry]) -> Entry:
    """The bench or study of that name or number; raises `UsageError` naming the nearest one."""
    if name.isdecimal() and 1 <= int(name) <= len(benches):
        return benches[int(name) - 1]
    for bench in benches:
        if bench.name == name:
            return bench
    if name.isdecimal():
        raise UsageError(
            f"--bench {name}: benches have numbers from 1 to {len(benches)}, see --list"
        )
    raise UsageError(f"unknown bench {name!r}{nearest(name, [bench.name for bench in benches])}")


def _number(
    kind: Callable[[Any], float], expected: str, least: float = -inf
) -> Callable[[Any], float]:
    def read(text: Any) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = nan
        if not least <= number < inf:
            raise click.BadParameter(f"expected {expected}, got {text!r}")
        return number

    return read


COUNT = _number(int, "an integer of at least 1", 1)
NATURAL = _number(int, "an integer of at least 0", 0)
_DURATION = _number(float, "a number of at least 0", 0)
FILE = click.Path(path_type=Path)
_FLAG_TYPES: Mapping[type, tuple[Any, str]] = {
    bool: (bool, ""),
    int: (_number(int, "an integer"), "N"),
    float: (_number(float, "a number"), "X"),
    str: (str, "NAME"),
}


def _bench(name: str) -> Entry:
    return find_bench(name, click.get_current_context().obj)


def _option(word: str, metavar: str, kind: Any, text: str, default: object = None) -> click.Option:
    return click.Option(
        [word],
        metavar=metavar,
        type=kind,
        default=default,
        show_default=default is not None,
        help=text,
    )


_BENCH = _option(
    "--bench", "NAME", _bench, "bench or study to run, by name or number", DEFAULT_BENCH
)
_LIST = click.Option(["--list"], is_flag=True, help="list the benches and studies, and end")
_TOPOLOGY = _option(
    "--topology", "FILE", FILE, "hardware  [default: the topology.yaml of kernbench]"
)
_DATA = click.Option(
    ["--data/--no-data"],
    default=True,
    help="with real data, or the timing alone, which is the same [default: data]",
)
_VERIFY = click.Option(
    ["--verify-data"],
    is_flag=True,
    help="execute the op log once more in numpy and compare it with the simulated memories",
)
GROUPS: Mapping[str, tuple[click.Option, ...]] = {
    "what runs": (
        _option(
            "--sips",
            "N",
            COUNT,
            "number of SIPs, one rank each  [default: the topology file's count]",
        ),
        _BENCH,
        _LIST,
    ),
    "what is simulated": (
        _TOPOLOGY,
        _option("--ccl", "FILE", FILE, "collectives  [default: the ccl.yaml of kernbench]"),
        _DATA,
        _VERIFY,
    ),
    "how it runs": (
        _option(
            "--procs", "P", COUNT, "processes that share the SIPs  [default: one for each SIP]"
        ),
        _option(
            "--timeout", "S", _DURATION, "longest silence of a process in seconds, 0: no limit", 60
        ),
        _option(
            "--jitter-ms",
            "MS",
            _DURATION,
            "hold every frame back up to MS ms: results must not change",
            0,
        ),
        _option("--jitter-seed", "SEED", NATURAL, "seed of the delays of --jitter-ms", 0),
    ),
    "what is kept": (
        _option(
            "--out",
            "DIR",
            FILE,
            "where run.json, oplog.jsonl and trace.json go  [default: runs/NNNN-NAME]",
        ),
    ),
}
GENERAL_GROUPS = {
    title: tuple(option for option in options if option not in (_BENCH, _LIST))
    for title, options in GROUPS.items()
}
"""The options of every run, whatever it runs."""
STUDY_GROUPS: Mapping[str, tuple[click.Option, ...]] = {
    "what runs": (_BENCH, _LIST),
    "what is simulated": (_TOPOLOGY,),
    "how it runs": (
        _option("--procs", "P", COUNT, "processes that simulate  [default: one for each core]"),
        _option(
            "--timeout", "S", _DURATION, "longest wait for a result in seconds, 0: no limit", 600
        ),
    ),
    "what is kept": (
        _option("--out", "DIR", FILE, "where the results go  [default: the study's own choice]"),
    ),
}
"""A study makes simulations of its own, so it takes none of the options that say how one is made."""
_EXAMPLES = """\b
examples:
  kernbench --sips 4                        the default bench on four SIPs
  kernbench --sips 4 --procs 1              the same in one process, for a debugger
  kernbench --sips 2 train.py --steps 10    your own script, started as torchrun does
  kernbench --help --bench NAME             the flags of another bench"""
# Everything after a script's name belongs to the script.
_SETTINGS: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 110,
    "allow_interspersed_args": False,
}


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups."""

    def __init__(self, groups: Mapping[str, Sequence[click.Option]], **rest: Any) -> None:
        super().__init__(**rest)
        self.params[:0] = chain.from_iterable(groups.values())
        self._groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section a group."""
        own = self.get_help_option(ctx)
        for title, options in {**self._groups, "other": [own] if own else []}.items():
            with formatter.section(title):
                formatter.write_dl(
                    [record for option in options if (record := option.get_help_record(ctx))]
                )


def _command(bench: Entry) -> click.Command:
    flags = {flag.name: _flag_option(flag) for flag in bench.flags}
    groups = STUDY_GROUPS if isinstance(bench, Study) else GROUPS
    return GroupedCommand(
        name="kernbench",
        context_settings=_SETTINGS,
        groups={**groups, f"flags of {bench.name}": tuple(flags.values())} if flags else groups,
        params=[
            click.Argument(
                ["words"],
                nargs=-1,
                type=click.UNPROCESSED,
                metavar="[SCRIPT [arguments of the script]]",
            )
        ],
        callback=_asked,
        help="Simulate multi-chip AI accelerators: one process per SIP, the same result for any number of processes.",
        options_metavar=f"[{' | '.join(_COMMAND_WORDS)}] [options]",
        epilog=_EXAMPLES,
    )


def _first_look(words: Sequence[str], benches: Sequence[Entry]) -> Entry:
    """The bench whose flags are options: the one that is named, or the default one.

    It may be named in the words of a script: that does no harm, for a script takes no flags of any bench.
    """
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    look = click.Command("look", params=[_BENCH], add_help_option=False, context_settings=settings)
    named: Entry | None = look.make_context(
        "look", list(words), obj=benches, resilient_parsing=True
    ).params["bench"]
    return named or find_bench(DEFAULT_BENCH, benches)


def _flag_option(flag: Flag) -> click.Option:
    kind, metavar = _FLAG_TYPES[flag.kind]
    word = "--" + flag.name.replace("_", "-")
    words = f"{word}/--no-{word[2:]}" if flag.kind is bool else word
    return click.Option(
        # Flags have a name space of their own: a bench may call one `words`.
        [f"flag_{flag.name}", words],
        type=kind,
        metavar=metavar or None,
        default=flag.default,
        show_default=flag.default != "",
        help=flag.help,
    )


@click.pass_context
def _asked(
    context: click.Context, /, bench: Entry, words: tuple[str, ...], **values: Any
) -> Invocation | None:
    flags = {
        name.removeprefix("flag_"): values.pop(name)
        for name in tuple(values)
        if name.startswith("flag_")
    }
    if values.pop("list"):
        return _print_list(context.obj, words)
    if not words:
        return Invocation(flags=flags, **{_kind(bench): bench}, **values)
    for name in ("bench", *(f"flag_{name}" for name in flags)):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"either a bench or a script: {words[0]!r} comes with bench options")
    return Invocation(script=_script(words[0]), argv=words[1:], **values)


def _print_list(benches: Sequence[Entry], words: tuple[str, ...]) -> None:
    if words:
        raise UsageError(f"'list' takes no argument, got {words[0]!r}")
    for number, bench in enumerate(benches, start=1):
        click.echo(f"{number:3}  {bench.name:<24} {bench.description}")


def _script(word: str) -> Path:
    script = Path(word)
    if script.is_file():
        return script
    # A word that could be the name of a command is more likely a misspelt one than a file.
    if script.suffix or len(script.parts) > 1:
        raise UsageError(f"no such script: {word!r}")
    if word in _COMMAND_WORDS:
        raise UsageError(f"the command {word!r} comes before the options")
    raise UsageError(f"unknown command {word!r}{nearest(word, _COMMAND_WORDS)}")


def _problem(
    error: click.UsageError, words: Sequence[str], bench: Entry, benches: Sequence[Entry]
) -> str:
    """What click found, in our words and with the nearest known one."""
    match error:
        case click.NoSuchOption(ctx=click.Context() as context):
            word = _as_given(error.option_name, words).partition("=")[0]
            elsewhere = chain(
                chain.from_iterable(GROUPS.values()),
                (_flag_option(f) for each in benches for f in each.flags),
            )
            if word in [
                option for other in elsewhere for option in (*other.opts, *other.secondary_opts)
            ]:
                return f"{word} is not an option of the {_kind(bench)} {bench.name}"
            parameters = context.command.get_params(context)
            known = [
                option
                for parameter in parameters
                for option in (*parameter.opts, *parameter.secondary_opts)
            ]
            return f"unknown option {word!r}{nearest(word, [option for option in known if option.startswith('--')])}"
        case click.BadOptionUsage():
            word, equals, value = _as_given(error.option_name, words).partition("=")
            return f"{word} takes no value, got {value!r}" if equals else f"{word} needs a value"
        case click.BadParameter(param=click.Option() as option):
            return f"{option.opts[0]}: {error.message}"
        case _:
            return error.format_message()


def _kind(entry: Entry) -> str:
    return "study" if isinstance(entry, Study) else "bench"


def _as_given(option: str, words: Sequence[str]) -> str:
    """The word in which click found `option`: with its value, or `-sips` where click saw `-s`."""
    long = option.startswith("--")
    return next(
        (
            word
            for word in words
            if (word.partition("=")[0] == option if long else word.startswith(option))
        ),
        option,
    )
