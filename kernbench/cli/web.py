"""`kernbench web`: a page with the hardware, the load of its links and the timeline of a run."""

from importlib.util import find_spec
from pathlib import Path

import click

from kernbench.cli.recorded import consistent, default_output, opened
from kernbench.command.options import CONTEXT_SETTINGS, COUNT
from runtime.core.errors import UsageError
from runtime.core.output import print_lines, write_output

DEFAULT_NAME = "web.html"


@click.command(name="web", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.argument("other", required=False, type=click.Path(path_type=Path))
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    help="Instead of a run, the machine of this topology file.",
)
@click.option(
    "--sips", type=COUNT, metavar="N", help="With --topology: SIPs, instead of those of the file."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"The page; by default {DEFAULT_NAME} in the directory of the run, or here.",
)
def web_command(
    run: Path | None,
    other: Path | None,
    topology: Path | None,
    sips: int | None,
    out: Path | None,
) -> int:
    """Write a page that shows where the time of a run went: one HTML file, without network.

    RUN is the directory of a run. The page has the SIPs with the load of their links over an
    interval, the timeline, counters of each component, the roofline and the critical path. It
    begins with the losses and what to change; with the directory of a second run, with the kernels
    of both side by side.
    """
    if run is None and topology is None:
        raise UsageError("web: expected the directory of a run, or --topology FILE")
    if run is not None and topology is not None:
        raise UsageError(
            f"web: --topology {topology} shows a machine without a run, and {run} is given too; a "
            "run has its own machine"
        )
    if sips is not None and topology is None:
        raise UsageError("web: --sips belongs to --topology; a run has its own number of SIPs")
    if find_spec("bokeh") is None:
        raise UsageError("web: the page is drawn by bokeh: pip install 'kernbench[web]'")
    path = out or default_output((run or Path()) / DEFAULT_NAME)
    if topology is not None:
        html = _topology_html(topology, sips)
    else:
        assert run is not None, "one of both is given"
        html = _run_html(run, other)
    write_output(path, html.encode())
    print_lines([f"{path}: {len(html.encode()):,} B"])
    return 0


def _topology_html(topology: Path, sips: int | None) -> str:
    # Imported on demand: Bokeh is an extra, and takes a second to import.
    from kernbench.explain.web.topology_page import topology_page
    from runtime.model.topology import load_topology

    return topology_page(load_topology(topology, sips), topology.name)


def _run_html(run: Path, other: Path | None) -> str:
    from kernbench.explain.web.run_page import run_page

    records = [opened(each) for each in (run, other) if each is not None]
    for each in records:
        if not each.total_ps:
            raise UsageError(
                f"web: {each.name} has taken no simulated time: there is nothing to show"
            )
    with consistent(*(each.directory for each in records)):
        return run_page(*records)
