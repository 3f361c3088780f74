"""The arguments of `perf`: the flags of nccl-tests, and why some of them do not exist here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kernbench.benches.collective_perf.collective import (
    ALL,
    COLLECTIVES,
    DTYPES,
    OPS,
    PerfParameters,
)
from kernbench.command.options import COUNT, FILE, NATURAL, SimulationOptions, option, parse_size
from runtime.core.errors import UsageError, nearest

AVERAGES = ("rank 0", "mean", "min", "max")
"""Statistics of the times of the ranks which `-a` reports, by its number."""
SINGLE = (0, 2)
"""Statistics that are the time of one rank, for which other ranks need not have waited."""
REFUSED: Mapping[tuple[str, ...], str] = {
    ("-t", "--nthreads"): "every rank is a SIP: --sips is their number",
    ("-g", "--ngpus"): "every rank is a SIP: --sips is their number",
    ("-m", "--agg_iters"): "collectives are not aggregated into groups; those of a rank are queued "
    "one after the other anyway",
    ("-N", "--run_cycles"): "a second cycle would give the same numbers, because nothing in a "
    "simulation is noise",
    ("-p", "--parallel_init"): "all ranks join the process group at once",
    ("-z", "--blocking"): "a SIP runs one collective of its rank after the other, as if the host "
    "waited for each",
    ("-y", "--stream_null"): "every PE runs collectives in a stream of their own",
    ("-T",): "a collective that hangs is reported as a deadlock; --timeout S bounds the silence of "
    "a process",
    ("-G", "--cudagraph"): "there are no graphs to capture",
    ("-C", "--report_cputime"): "the program of a rank takes no simulated time of its own",
    ("-S", "--report_timestamps"): "times are simulated, and the same in every run",
    ("-R", "--local_register"): "memory of a SIP needs no registration",
    ("-x", "--cta_policy"): "kernels run on PEs: --cubes and --pes are their numbers",
    ("-D", "--device_implementation"): "--algorithm chooses the implementation",
    ("-V", "--device_cta_count"): "kernels run on PEs: --cubes and --pes are their numbers",
    ("-M", "--memory_report"): "nothing is allocated but the buffers of the row",
    ("-I", "--per_iter_timing"): "--out DIR keeps an op log that has the start and end of every "
    "iteration",
    ("-K", "--per_iter_skip"): "-w is the number of iterations that are not timed",
    ("-u", "--unalign"): "buffers are aligned",
    ("-F",): "there is no CSV file; --json FILE has every row",
}
"""Flags of nccl-tests without effect in a simulation, and the reason."""
_MOST_SIZES = 100_000
"""Sizes of a measurement; no simulation of more of them would end."""


@dataclass(frozen=True)
class PerfRequest:
    """One call of `perf`. `average` is an index of `AVERAGES`, `json` a file for the rows.

    The buffers are on at most all of the cubes `on_cubes` or, if there are none, on at most `cubes`
    of the cubes nearest to the IO chiplet; the topology file shows which: the `cubes` of the
    parameters are left open. Without `options.out` no op log is kept: that of large sizes would not
    fit into memory.
    """

    parameters: PerfParameters
    cubes: int
    on_cubes: tuple[int, ...]
    average: int
    json: Path | None
    options: SimulationOptions


def perf_request(
    collective: str | None,
    average: int,
    json: Path | None,
    options: SimulationOptions,
    values: Mapping[str, Any],
) -> PerfRequest:
    """The request of the parsed arguments; raises `UsageError` for a wrong combination."""
    if collective is None:
        raise UsageError(f"perf: which collective? one of {', '.join(COLLECTIVES)}")
    if collective not in COLLECTIVES:
        raise UsageError(
            f"perf: unknown collective {collective!r}{nearest(collective, COLLECTIVES)}"
        )
    if values["step_bytes"] is not None and values["step_factor"] is not None:
        raise UsageError("perf: either -i/--stepbytes or -f/--stepfactor, not both")
    if values["cubes"] is not None and values["on_cubes"]:
        raise UsageError("perf: either --cubes or --on-cubes, not both")
    names = ("min_bytes", "iters", "warmup", "check", "op", "dtype", "root")
    parameters = PerfParameters(
        collective=collective,
        max_bytes=values["min_bytes"] if values["max_bytes"] is None else values["max_bytes"],
        step_bytes=values["step_bytes"] or 1 << 20,
        step_factor=values["step_factor"] or 1,
        algorithm=values["algorithm"] or "",
        cubes="",
        pes=values["pes"] or 0,
        **{name: values[name] for name in names},
    )
    _check(parameters)
    return PerfRequest(
        parameters=parameters,
        cubes=values["cubes"] or 1,
        on_cubes=values["on_cubes"] or (),
        average=average,
        json=json,
        options=options,
    )


def refused_options() -> list[click.Option]:
    """Hidden options for the flags of nccl-tests that are refused with a reason."""
    return [
        click.Option(names, f"refused_{number}", hidden=True, expose_value=False, callback=_refuse)
        for number, names in enumerate(map(list, REFUSED))
    ]


def _refuse(_: click.Context, refused: click.Parameter, value: object) -> None:
    if value is not None:
        reason = REFUSED[tuple(refused.opts)]
        raise UsageError(f"perf: {'/'.join(refused.opts)} has no meaning here: {reason}")


def _check(parameters: PerfParameters) -> None:
    if parameters.min_bytes > parameters.max_bytes:
        raise UsageError(f"perf: -b {parameters.min_bytes} is more than -e {parameters.max_bytes}")
    sizes = (parameters.max_bytes - parameters.min_bytes) // parameters.step_bytes + 1
    if parameters.step_factor == 1 and sizes > _MOST_SIZES:
        raise UsageError(
            f"perf: -i {parameters.step_bytes} makes {sizes:,} sizes, more than {_MOST_SIZES:,}"
        )
    collective = COLLECTIVES[parameters.collective]
    integral = parameters.dtype != ALL and not DTYPES[parameters.dtype].is_floating_point
    if collective.reduces and parameters.op == "avg" and integral:
        raise UsageError(
            f"perf: -o avg -d {parameters.dtype}: an average is for half, bfloat16 and float"
        )


def _size(text: Any) -> int:
    try:
        return parse_size(str(text))
    except ValueError:
        raise click.BadParameter(
            "expected a size of at least one byte and below 2^63, such as 8, 64K, 1.5M or 1G, "
            f"got {text!r}"
        ) from None


def _cubes(text: Any) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in str(text).split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise click.BadParameter(
            f"expected numbers of cubes, each once, such as 12 or 12,13, got {text!r}"
        )
    return numbers


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


_NCCL_FLAGS: tuple[tuple[str, str, str, Any, str, object], ...] = (
    ("-b --minbytes", "min_bytes", "SIZE", _size, "smallest size of a rank's buffer", "64K"),
    ("-e --maxbytes", "max_bytes", "SIZE", _size, "largest size  [default: the smallest]", None),
    (
        "-i --stepbytes",
        "step_bytes",
        "SIZE",
        _size,
        "from one size to the next  [default: 1M]",
        None,
    ),
    (
        "-f --stepfactor",
        "step_factor",
        "N",
        COUNT,
        "ratio of each size to the previous size",
        None,
    ),
    ("-n --iters", "iters", "N", COUNT, "iterations that are timed", 1),
    (
        "-w --warmup_iters",
        "warmup",
        "N",
        NATURAL,
        "iterations of each size before; the first one maps",
        1,
    ),
    ("-c --check", "check", "N", NATURAL, "iterations with random data that are checked", 1),
    ("-o --op", "op", "OP", _one_of((*OPS, ALL)), f"{' '.join(OPS)} all", "sum"),
    (
        "-d --datatype",
        "dtype",
        "TYPE",
        _one_of((*DTYPES, ALL)),
        f"{' '.join(DTYPES)} all",
        "float",
    ),
    ("-r --root", "root", "RANK", _root, "root of broadcast and reduce, or all", 0),
    ("-a --average", "average", "N", _average, "of the ranks: 0 rank 0, 1 mean, 2 min, 3 max", 1),
)
PERF_GROUPS: Mapping[str, tuple[click.Option, ...]] = {
    "flags of nccl-tests": tuple(
        option([*names.split(), name], metavar, kind, text, default)
        for names, name, metavar, kind, text, default in _NCCL_FLAGS
    ),
    "how it is measured": (
        option(
            "--algorithm",
            "NAME",
            str,
            "algorithm of ccl.yaml, or auto  [default: its defaults.algorithm]",
        ),
        option(
            "--cubes",
            "N",
            COUNT,
            "cubes that share a buffer, at most: those nearest to the IO chiplet  [default: 1]",
        ),
        option("--on-cubes", "LIST", _cubes, "these cubes instead, such as 0 or 12,13"),
        option("--pes", "N", COUNT, "PEs of each that share it, at most  [default: all]"),
    ),
    "what is kept": (
        option(
            ["--json", "-J", "--output_file", "json"], "FILE", FILE, "write the rows to this file"
        ),
        option(
            "--out",
            "DIR",
            FILE,
            "write the files of a run, with records for `why`  [default: none of them]",
        ),
    ),
}
"""The options of `perf` beside those of every simulation."""
