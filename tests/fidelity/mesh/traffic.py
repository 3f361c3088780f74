"""`python -m tests.fidelity.mesh.traffic`: synthetic traffic on the 4x4 mesh, as lines of CSV."""

import sys

import click

from kernbench.command.options import number
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import default_file, read_text
from tests.fidelity.mesh.mesh_checks import traffic_csv
from tests.fidelity.mesh.mesh_network import FLOW_CONTROLS, PATTERNS, MeshRouter, Traffic


@click.command()
@click.option("--pattern", type=click.Choice(PATTERNS), default=PATTERNS[0], help="Destinations.")
@click.option(
    "--load",
    "loads",
    type=number(float, "a number above 0 and at most 1", sys.float_info.min, 1.0),
    multiple=True,
    required=True,
    help="Flits per node and cycle.",
)
@click.option("--flits", type=click.IntRange(1, 64), default=1, help="Flits of a packet.")
@click.option("--seed", "seeds", type=click.IntRange(0), multiple=True, default=(1,))
@click.option(
    "--flow-control",
    type=click.Choice(FLOW_CONTROLS),
    default="unlimited",
    help="FIFO links without a limit of buffers for packets (unlimited) or for flits; or routers "
    "with credits.",
)
@click.option("--router-stages", "stages", type=click.IntRange(1, 4), help="With credits.")
@click.option("--vcs", type=click.IntRange(1, 64), help="With credits.")
@click.option("--buffer-flits", type=click.IntRange(1, 1 << 16), help="Of a VC, with credits.")
def main(
    pattern: str,
    loads: tuple[float, ...],
    flits: int,
    seeds: tuple[int, ...],
    flow_control: str,
    **router: int | None,
) -> None:
    """Print a line for each `--load` and each `--seed`."""
    given = {name: value for name, value in router.items() if value is not None}
    if given and flow_control != "credits":
        raise click.UsageError(f"--{next(iter(given)).replace('_', '-')} needs credits")
    file = TopologyFile.of(read_text(default_file("topology.yaml")))
    traffics = (Traffic(pattern, load, flits, seed) for load in loads for seed in seeds)
    for line in traffic_csv(file, MeshRouter(flow_control, **given), traffics):
        click.echo(line)


if __name__ == "__main__":
    main()
