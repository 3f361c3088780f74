"""The command line of `perf`: the flags of nccl-tests, the options of every run, and why some flags do not exist here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kernbench.benches.collective_perf.collective import ALL, COLLECTIVES, DTYPES, OPS, Request
from kernbench.cli.options import COUNT, FILE, GENERAL_GROUPS, NATURAL, GroupedCommand
from runtime.core.errors import UsageError, nearest

AVERAGES = ("rank 0", "mean", "min", "max")
"""What `-a` reports of the times of the ranks, by its number."""
NO_MEANING: Mapping[tuple[str, ...], str] = {
    ("-t", "--nthreads"): "every rank is a SIP: --sips says how many",
    ("-g", "--ngpus"): "every rank is a SIP: --sips says how many",
    (
        "-m",
        "--agg_iters",
    ): "collectives are not aggregated into groups; those of a rank are queued one behind the other anyway",
    (
        "-N",
        "--run_cycles",
    ): "a second cycle would give the same numbers, for nothing in a simulation is noise",
    ("-p", "--parallel_init"): "all ranks join the process group at once",
    (
        "-z",
        "--blocking",
    ): "a SIP runs one collective of its rank after the other, as if the host waited for each",
    ("-y", "--stream_null"): "every PE runs collectives in a thread of their own",
    (
        "-T",
    ): "a collective that hangs is reported as a deadlock; --timeout S bounds the silence of a process",
    ("-G", "--cudagraph"): "there are no graphs to capture",
    ("-C", "--report_cputime"): "the program of a rank takes no simulated time of its own",
    ("-S", "--report_timestamps"): "times are simulated, and the same in every run",
    ("-R", "--local_register"): "memory of a SIP needs no registration",
    ("-x", "--cta_policy"): "kernels run on PEs: --cubes and --pes say on how many",
    ("-D", "--device_implementation"): "--algorithm chooses the implementation",
    ("-V", "--device_cta_count"): "kernels run on PEs: --cubes and --pes say on how many",
    ("-M", "--memory_report"): "nothing is allocated but the buffers of the row",
    (
        "-I",
        "--per_iter_timing",
    ): "--out DIR keeps an op log that has the start and end of every iteration",
    ("-K", "--per_iter_skip"): "-w says how many iterations are not timed",
    ("-u", "--unalign"): "buffers are aligned",
    ("-F",): "there is no CSV file; --json FILE has every row",
}
"""Flags of nccl-tests that would change nothing here -> why."""
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Asked:
    """What the words of `perf` ask for: `general` are the options that say how and where a run is made, by name."""

    request: Request
    average: int
    json: Path | None
    out: Path | None
    general: Mapping[str, Any]


def parse_size(text: str) -> int:
    """Bytes, with K, M or G for powers of 1024 as in nccl-tests; `ValueError` for anything else, and for less than one."""
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if size < 1:
        raise ValueError(text)
    return size


def command() -> click.Command:
    """The command, which returns what was `Asked`."""
    return GroupedCommand(
        {**_GENERAL, **_GROUPS},
        name="kernbench perf",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        params=[click.Argument(["collective"], required=False, metavar="COLLECTIVE"), *_refused()],
        callback=_asked,
        help=f"Measure a collective as nccl-tests does: {', '.join(COLLECTIVES)}. Times are simulated.",
        options_metavar="[options]",
        epilog="\b\nexample:\n  kernbench perf all_reduce --sips 4 -b 8 -e 64K -f 2 -n 5 -w 1 -c 1 -o sum -d half",
    )


def _size(text: Any) -> int:
    try:
        return parse_size(str(text))
    except ValueError:
        raise click.BadParameter(
            f"expected a size of at least one byte such as 8, 64K, 1.5M or 1G, got {text!r}"
        ) from None


def _one_of(known: Sequence[str]) -> Any:
    def read(text: str) -> str:
        if text not in known:
            raise click.BadParameter(f"unknown {text!r}{nearest(text, known)}")
        return text

    return read


def _root(text: Any) -> int:
    return -1 if text in (ALL, -1) else int(NATURAL(text))


def _average(text: Any) -> int:
    if str(text) not in ("0", "1", "2", "3"):
        raise click.BadParameter(f"expected 0 (rank 0), 1 (mean), 2 (min) or 3 (max), got {text!r}")
    return int(text)


def _flag(
    words: Sequence[str], name: str, metavar: str, kind: Any, text: str, default: object = None
) -> click.Option:
    shown = default is not None
    return click.Option(
        [*words, name], metavar=metavar, type=kind, default=default, show_default=shown, help=text
    )


_GENERAL = {title: options for title, options in GENERAL_GROUPS.items() if title != "what is kept"}
_GROUPS: Mapping[str, tuple[click.Option, ...]] = {
    "flags of nccl-tests": (
        _flag(
            ["-b", "--minbytes"],
            "min_bytes",
            "SIZE",
            _size,
            "smallest size of a rank's buffer",
            "64K",
        ),
        _flag(
            ["-e", "--maxbytes"],
            "max_bytes",
            "SIZE",
            _size,
            "largest size  [default: the smallest]",
        ),
        _flag(
            ["-i", "--stepbytes"],
            "step_bytes",
            "SIZE",
            _size,
            "from one size to the next  [default: 1M]",
        ),
        _flag(
            ["-f", "--stepfactor"],
            "step_factor",
            "N",
            COUNT,
            "each size is so many times the one before",
        ),
        _flag(["-n", "--iters"], "iters", "N", COUNT, "iterations that are timed", 1),
        _flag(
            ["-w", "--warmup_iters"],
            "warmup",
            "N",
            NATURAL,
            "iterations of each size before; the first one maps",
            1,
        ),
        _flag(
            ["-c", "--check"],
            "check",
            "N",
            NATURAL,
            "iterations with random data that are checked",
            1,
        ),
        _flag(["-o", "--op"], "op", "OP", _one_of((*OPS, ALL)), f"{' '.join(OPS)} all", "sum"),
        _flag(
            ["-d", "--datatype"],
            "dtype",
            "TYPE",
            _one_of((*DTYPES, ALL)),
            f"{' '.join(DTYPES)} all",
            "float",
        ),
        _flag(["-r", "--root"], "root", "RANK", _root, "root of broadcast and reduce, or all", 0),
        _flag(
            ["-a", "--average"],
            "average",
            "N",
            _average,
            "of the ranks: 0 rank 0, 1 mean, 2 min, 3 max",
            1,
        ),
    ),
    "how it is measured": (
        _flag(
            ["--algorithm"],
            "algorithm",
            "NAME",
            str,
            "algorithm of ccl.yaml, or auto  [default: its defaults.algorithm]",
        ),
        _flag(["--cubes"], "cubes", "N", COUNT, "cubes that share a buffer, at most", 1),
        _flag(["--pes"], "pes", "N", COUNT, "PEs of each that share it, at most  [default: all]"),
    ),
    "what is kept": (
        _flag(
            ["--json", "-J", "--output_file"], "json", "FILE", FILE, "write the rows to this file"
        ),
        _flag(
            ["--out"],
            "out",
            "DIR",
            FILE,
            "also run.json, oplog.jsonl and trace.json  [default: none of them]",
        ),
    ),
}


def _refused() -> list[click.Option]:
    return [
        click.Option(words, f"refused_{number}", hidden=True, expose_value=False, callback=_refuse)
        for number, words in enumerate(map(list, NO_MEANING))
    ]


def _refuse(_: click.Context, option: click.Parameter, value: object) -> None:
    if value is not None:
        raise UsageError(
            f"perf: {'/'.join(option.opts)} has no meaning here: {NO_MEANING[tuple(option.opts)]}"
        )


def _asked(
    collective: str | None, average: int, json: Path | None, out: Path | None, **values: Any
) -> Asked:
    known = ", ".join(COLLECTIVES)
    if collective is None:
        raise UsageError(f"perf: which collective? one of {known}")
    if collective not in COLLECTIVES:
        raise UsageError(
            f"perf: unknown collective {collective!r}{nearest(collective, COLLECTIVES)}"
        )
    if values["step_bytes"] is not None and values["step_factor"] is not None:
        raise UsageError("perf: either -i/--stepbytes or -f/--stepfactor, not both")
    names = ("min_bytes", "iters", "warmup", "check", "op", "dtype", "root", "cubes")
    request = Request(
        collective=collective,
        max_bytes=values["min_bytes"] if values["max_bytes"] is None else values["max_bytes"],
        step_bytes=values["step_bytes"] or 1 << 20,
        step_factor=values["step_factor"] or 1,
        algorithm=values["algorithm"] or "",
        pes=values["pes"] or 0,
        **{name: values[name] for name in names},
    )
    _check(request)
    general = {
        name: values[name]
        for group in _GENERAL.values()
        for option in group
        if (name := option.name)
    }
    return Asked(request, average, json, out, general)


def _check(request: Request) -> None:
    if request.min_bytes > request.max_bytes:
        raise UsageError(f"perf: -b {request.min_bytes} is more than -e {request.max_bytes}")
    collective = COLLECTIVES[request.collective]
    integral = request.dtype != ALL and not DTYPES[request.dtype].is_floating_point
    if collective.reduces and request.op == "avg" and integral:
        raise UsageError(
            f"perf: -o avg -d {request.dtype}: an average is for half, bfloat16 and float"
        )
