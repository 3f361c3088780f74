"""`kernbench perf`: measure a collective with the arguments and the table of nccl-tests."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from kernbench.benches.collective_perf.collective import COLLECTIVES
from kernbench.command.options import (
    ON_OPTION,
    SIMULATION_GROUPS,
    GroupedCommand,
    SimulationOptions,
    cli_context,
)
from kernbench.measure.collectives.arguments import PERF_GROUPS, perf_request, refused_options
from kernbench.points.task import LOCAL


@click.pass_context
def _perf(
    context: click.Context,
    /,
    collective: str | None,
    average: int,
    json: Path | None,
    on: str,
    **values: Any,
) -> int:
    options = SimulationOptions(
        **{
            each.name: values[each.name]
            for each in fields(SimulationOptions)
            if each.name in values
        }
    )
    request = perf_request(collective, average, json, options, values)
    if on != LOCAL:
        # Imported here: a run on this machine has no use for the engines of others.
        from kernbench.cli.group import arguments_of_command
        from kernbench.measure.collectives.elsewhere import measure_elsewhere

        return measure_elsewhere(request, arguments_of_command(context), on)
    return cli_context(context).execute(request)


perf_command = GroupedCommand(
    # The options that `perf` describes itself replace the group of that title.
    {
        **{title: each for title, each in SIMULATION_GROUPS.items() if title not in PERF_GROUPS},
        **PERF_GROUPS,
    },
    name="perf",
    params=[
        click.Argument(["collective"], required=False, metavar="COLLECTIVE"),
        *refused_options(),
        ON_OPTION,
    ],
    callback=_perf,
    help=f"Measure a collective as nccl-tests does: {', '.join(COLLECTIVES)}. Times are simulated.",
    options_metavar="[options]",
    epilog="\b\nexample:\n  "
    "kernbench perf all_reduce --sips 4 -b 8 -e 64K -f 2 -n 5 -w 1 -c 1 -o sum -d half",
)
