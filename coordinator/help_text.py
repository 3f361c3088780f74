"""What `kernbench --help` shows, made from the table of options and the flags of a bench."""

from collections.abc import Iterator

from coordinator.options import OPTIONS, option_of
from runtime.bench_registry import Bench, Flag


def help_text(bench: Bench) -> Iterator[str]:
    """What `--help` shows, with the flags of `bench`."""
    yield "usage: kernbench [run] [options] [--bench NAME [flags of the bench]]"
    yield "       kernbench [run] [options] SCRIPT [arguments of the script]"
    yield "       kernbench list"
    yield ""
    yield "Simulate multi-chip AI accelerators: one process per SIP, the same result for any number of processes."
    for group in dict.fromkeys(option.group for option in OPTIONS):
        yield f"\n{group}:"
        yield from (_help_line(o.name, o.metavar, o.help) for o in OPTIONS if o.group == group)
    if bench.flags:
        yield f"\nflags of {bench.name}:"
        yield from (_help_line(option_of(f), _metavar(f), _flag_help(f)) for f in bench.flags)
    yield "\nexamples:"
    yield "  kernbench --sips 4                        the default bench on four SIPs"
    yield "  kernbench --sips 4 --procs 1              the same in one process, for a debugger"
    yield "  kernbench --sips 2 train.py --steps 10    your own script, started as torchrun does"
    yield "  kernbench --help --bench NAME             the flags of another bench"


def _help_line(name: str, metavar: str, text: str) -> str:
    return f"  {f'--{name} {metavar}'.rstrip():<22}  {text}"


def _metavar(flag: Flag) -> str:
    return {bool: "", int: "N", float: "X"}.get(flag.kind, "NAME")


def _flag_help(flag: Flag) -> str:
    default = ("on" if flag.default else "off") if flag.kind is bool else flag.default
    return flag.help if default == "" else f"{flag.help} (default: {default})".lstrip()
