"""`kernbench sweep`: one program over values of keys and arguments, a row a point."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from kernbench.command.entries import find_entry
from kernbench.command.options import (
    FILE,
    SIMULATION_GROUPS,
    STUDY_GROUPS,
    TOPOLOGY,
    GroupedCommand,
    cli_context,
    is_given,
    option,
)
from kernbench.points.driver import PointOptions
from kernbench.points.task import Limits
from kernbench.sweep.figures import AUTO, PLOTS
from kernbench.sweep.request import NO_PLOT
from runtime.core.errors import UsageError

_FIGURE = ("metric", "plot", "again")
"""The options that `--from` can have beside it."""
_EXAMPLES = """\b
examples:
  kernbench sweep ccl-allreduce --set ucie.bw_gbs=64..512..x2
  kernbench sweep ccl-allreduce --set ucie.bw_gbs=64,128,256 --set pe.dma.channels=2,4,8
  kernbench sweep examples/kernels/matmul.py --sips 1 --arg --size=256,512
  kernbench sweep --from sweeps/0001-ccl-allreduce --metric algbw_gbs@16384"""


def _shared(group: str, name: str) -> click.Option:
    """An option that a single simulation has as well."""
    return next(each for each in SIMULATION_GROUPS[group] if each.name == name)


SWEEP_GROUPS = {
    "what is swept": (
        click.Option(
            ["--set"],
            multiple=True,
            metavar="KEY=VALUES",
            help="a key of topology.yaml or ccl.yaml, in full or by a unique end; values are a "
            "list 64,128,256, a range 2..8, with a step 2..8..2 or a factor 64..512..x2",
        ),
        click.Option(
            ["--arg"],
            multiple=True,
            metavar="--NAME=VALUES",
            help="a flag of a bench or an argument of a script; one value is fixed",
        ),
        option("--sips", "N,N", str, "number of SIPs  [default: the topology file's count]"),
        click.Option(
            ["--zip"],
            is_flag=True,
            help="the first values of all lists are a point, the second ones, and so on "
            "[default: all combinations]",
        ),
    ),
    "a script, as with torchrun": (
        click.Option(
            ["-m", "--module"],
            is_flag=True,
            help="PROGRAM is the name of a module, as of python -m",
        ),
        click.Option(
            ["--as-cuda"],
            is_flag=True,
            help="'cuda' and 'nccl' of PyTorch are the simulated device and its backend",
        ),
    ),
    "what is simulated": (
        TOPOLOGY,
        _shared("what is simulated", "ccl"),
        _shared("what is simulated", "data"),
    ),
    "how it runs": STUDY_GROUPS["how it runs"],
    "what is kept": (
        option("--out", "DIR", FILE, "where the results go  [default: sweeps/NNNN-NAME]"),
    ),
    "what is shown": (
        option(
            "--metric",
            "COLUMN",
            str,
            "the column of the figure, or two for a Pareto front: A,B  [default: time_ns]",
        ),
        option(
            "--plot",
            "KIND",
            click.Choice((*PLOTS, NO_PLOT)),
            f"{', '.join(PLOTS)} or {NO_PLOT}; auto: by the number of parameters  [default: auto]",
        ),
        option(
            ("--from", "again"),
            "DIR",
            FILE,
            "draw the figure of the sweep in DIR again, from its CSV, without simulating",
        ),
    ),
}


@click.pass_context
def _sweep(
    context: click.Context,
    /,
    *,
    program: str | None,
    arguments: tuple[str, ...],
    again: Path | None,
    out: Path | None,
    metric: str | None,
    plot: str | None,
    **options: Any,
) -> int:
    # Imported here: a help text needs no schema and no measurement.
    from kernbench.sweep.columns import TIME
    from kernbench.sweep.request import FigureRequest, SweepOptions, sweep_request

    cli = cli_context(context)
    if again is not None:
        _require_figure_alone(context, program)
        return cli.execute(FigureRequest(again, metric, plot))
    if program is None:
        raise UsageError("sweep: which program? a bench, FILE.py, or -m MODULE; see --help")
    taken = {each.name for each in fields(SweepOptions)}
    given = SweepOptions(
        program=program,
        arguments=arguments,
        metric=metric or TIME,
        plot=plot or AUTO,
        **{name: value for name, value in options.items() if name in taken},
    )

    def bench_of(name: str) -> Any:
        return cli.bench(name) or find_entry(name, cli.entries)

    try:
        request = sweep_request(given, _point_options(options), out, bench_of)
    except UsageError as error:
        raise UsageError(f"sweep: {error}") from error
    return cli.execute(request)


def _point_options(options: Mapping[str, Any]) -> PointOptions:
    limits = Limits(options["point_timeout"], options["point_memory"] or 0)
    return PointOptions(
        on=options["on"],
        procs=options["procs"],
        timeout_s=options["timeout"],
        resume=options["resume"],
        limits=limits,
    )


def _require_figure_alone(context: click.Context, program: str | None) -> None:
    """Raise `UsageError` for anything beside `--from` that a figure does not depend on."""
    others = [program] if program else []
    others += [
        each.opts[0]
        for each in context.command.params
        if each.name and each.name not in _FIGURE and is_given(context, each.name)
    ]
    if others:
        raise UsageError(f"sweep: {others[0]} with --from, which simulates nothing")


sweep_command = GroupedCommand(
    SWEEP_GROUPS,
    name="sweep",
    params=[
        click.Argument(["program"], required=False, metavar="PROGRAM"),
        click.Argument(["arguments"], nargs=-1, metavar="[-- ARGUMENTS]", type=click.UNPROCESSED),
    ],
    callback=_sweep,
    help="Simulate PROGRAM, a bench or a script, with every combination of some values of keys and "
    "arguments: a table with a row a point, and a figure.",
    options_metavar="[options]",
    epilog=_EXAMPLES,
)
