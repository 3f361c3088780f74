"""The grammar of the command line: a table of options, and one pass over the words.

It is our own because the words after `--bench` depend on the bench, and those after a script belong to the script.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from runtime.bench_registry import Bench, Flag, Scalar
from runtime.errors import UsageError, nearest

COMMANDS = ("run", "list")
DEFAULT_BENCH = "ccl-allreduce"


@dataclass(frozen=True)
class Invocation:
    """What the command line asks for, with its defaults: the fields are the options of the same names."""

    command: str = "run"
    help: bool = False
    sips: int | None = None
    procs: int | None = None
    bench: str = DEFAULT_BENCH
    topology: Path | None = None
    ccl: Path | None = None
    data: bool = True
    out: Path | None = None
    timeout: float = 60.0
    jitter_ms: float = 0.0
    jitter_seed: int = 0
    flags: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    script: Path | None = None
    argv: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """One option of `run`: how its value is read, and what `--help` says. Without a reader it is a switch."""

    name: str
    metavar: str
    read: Callable[[str], object] | None
    group: str
    help: str


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _duration(text: str) -> float:
    number = float(text)
    if number < 0 or not isfinite(number):
        raise ValueError
    return number


_EXPECTED: Mapping[Callable[[str], object], str] = {
    _count: "an integer of at least 1",
    _natural: "an integer of at least 0",
    _duration: "a number of at least 0",
    int: "an integer",
    float: "a number",
}

OPTIONS = (
    Option("sips", "N", _count, "what runs", "number of SIPs, one rank each (default: the topology file's count)"),
    Option("bench", "NAME", str, "what runs", f"bench to run, by name or number (default: {DEFAULT_BENCH})"),
    Option("list", "", None, "what runs", "list the benches and end"),
    Option("topology", "FILE", Path, "what is simulated", "hardware (default: the topology.yaml of kernbench)"),
    Option("ccl", "FILE", Path, "what is simulated", "collectives (default: the ccl.yaml of kernbench)"),
    Option("data", "", None, "what is simulated", "operations carry real data (default)"),
    Option("no-data", "", None, "what is simulated", "simulate the timing alone; simulated times are the same"),
    Option("procs", "P", _count, "how it runs", "processes that share the SIPs (default: one for each SIP)"),
    Option("timeout", "S", _duration, "how it runs", "longest silence of a process in seconds, 0: no limit (default: 60)"),
    Option("jitter-ms", "MS", _duration, "how it runs", "hold every frame back up to MS ms: results must not change"),
    Option("jitter-seed", "SEED", _natural, "how it runs", "seed of the delays of --jitter-ms (default: 0)"),
    Option("out", "DIR", Path, "what is kept", "directory for run.json, oplog.jsonl, trace.json (default: runs/NNNN-NAME)"),
    Option("help", "", None, "other", "show this text and end"),
)
_OPTION = {option.name: option for option in OPTIONS}
_SWITCHES: Mapping[str, tuple[str, object]] = {
    "list": ("command", "list"),
    "data": ("data", True),
    "no-data": ("data", False),
    "help": ("help", True),
}


def parse(words: Sequence[str], benches: Sequence[Bench]) -> Invocation:
    """What `words` ask for, given the benches there are. Raises `UsageError` in one line, with the nearest known word."""
    return _Reading(words, benches).invocation()


def find_bench(name: str, benches: Sequence[Bench]) -> Bench:
    """The bench of that name or number; raises `UsageError` naming the nearest one."""
    if name.isdecimal() and 1 <= int(name) <= len(benches):
        return benches[int(name) - 1]
    for bench in benches:
        if bench.name == name:
            return bench
    if name.isdecimal():
        raise UsageError(f"--bench {name}: benches have numbers from 1 to {len(benches)}, see --list")
    raise UsageError(f"unknown bench {name!r}{nearest(name, [bench.name for bench in benches])}")


def option_of(flag: Flag) -> str:
    """`n-elem` for the parameter `n_elem`."""
    return flag.name.replace("_", "-")


class _Reading:
    """One pass over the words."""

    def __init__(self, words: Sequence[str], benches: Sequence[Bench]) -> None:
        self._words = list(words)
        self._benches = benches
        self._values: dict[str, Any] = {}
        self._flags: dict[str, Scalar] = {}
        self._command_allowed = True

    def invocation(self) -> Invocation:
        while self._words:
            word = self._words.pop(0)
            if word == "--" and self._words:
                self._take_script(self._words.pop(0))
            elif word in ("-h", "--help"):
                self._values["help"] = True
            elif word.startswith("-") and word != "-":
                self._take_option(word)
            elif self._command_allowed and word in COMMANDS:
                self._values["command"] = word
                self._command_allowed = False
            else:
                self._take_script(word)
        return self._checked()

    def _take_script(self, word: str) -> None:
        script = Path(word)
        if not script.is_file():
            # A word that could be the name of a command is more likely a misspelt one than a file.
            if script.suffix or len(script.parts) > 1:
                raise UsageError(f"no such script: {word!r}")
            raise UsageError(f"unknown command {word!r}{nearest(word, COMMANDS)}")
        self._values["script"] = script
        self._values["argv"] = tuple(self._words)
        self._words.clear()

    def _take_option(self, word: str) -> None:
        name, equals, value = word.removeprefix("--").partition("=")
        option = _OPTION.get(name) if word.startswith("--") else None
        if option is None:
            self._take_flag(word, name, value if equals else None)
        elif option.read is not None:
            text = self._value(name, value if equals else None)
            self._values[name.replace("-", "_")] = _read(option.read, name, text)
        elif equals:
            raise UsageError(f"--{name} takes no value, got {value!r}")
        else:
            target, constant = _SWITCHES[name]
            self._values[target] = constant

    def _take_flag(self, word: str, name: str, value: str | None) -> None:
        """A flag of the bench named so far, or of the default one."""
        flags = {option_of(flag): flag for flag in self._bench_flags()}
        negated = flags.get(name.removeprefix("no-")) if name.startswith("no-") else None
        flag = flags.get(name) or negated
        if flag is None or not word.startswith("--") or (negated and negated.kind is not bool):
            known = [f"--{known}" for known in [*_OPTION, *flags]]
            raise UsageError(f"unknown option {word.partition('=')[0]!r}{nearest(word.partition('=')[0], known)}")
        if flag.kind is bool:
            if value is not None:
                raise UsageError(f"--{name} takes no value, got {value!r}")
            self._flags[flag.name] = negated is None
        else:
            self._flags[flag.name] = _read(flag.kind, name, self._value(name, value))

    def _bench_flags(self) -> tuple[Flag, ...]:
        name: str = self._values.get("bench", DEFAULT_BENCH)
        if name == DEFAULT_BENCH and name not in [bench.name for bench in self._benches]:
            return ()
        return find_bench(name, self._benches).flags

    def _value(self, name: str, value: str | None) -> str:
        if value is not None:
            return value
        if not self._words:
            raise UsageError(f"--{name} needs a value")
        return self._words.pop(0)

    def _checked(self) -> Invocation:
        invocation = Invocation(**self._values, flags=self._flags)
        if invocation.script is not None:
            self._check_script(invocation)
        elif invocation.command == "run" and not invocation.help:
            bench = find_bench(invocation.bench, self._benches)
            for name in self._flags:
                if name not in [flag.name for flag in bench.flags]:
                    raise UsageError(f"--{name.replace('_', '-')} is not an option of the bench {bench.name}")
        return invocation

    def _check_script(self, invocation: Invocation) -> None:
        if invocation.command != "run":
            raise UsageError(f"{invocation.command!r} takes no argument, got {str(invocation.script)!r}")
        if "bench" in self._values or self._flags:
            raise UsageError(f"either a bench or a script: {str(invocation.script)!r} comes with bench options")


def _read(kind: Callable[[str], Any], name: str, text: str) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        raise UsageError(f"--{name}: expected {_EXPECTED[kind]}, got {text!r}") from error
