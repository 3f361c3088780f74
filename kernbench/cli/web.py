"""`kernbench web`: a page with the hardware of a topology file."""

from importlib.util import find_spec
from pathlib import Path

import click

from kernbench.cli.options import CONTEXT_SETTINGS, COUNT
from runtime.core.errors import UsageError
from runtime.core.output import print_lines, write_output

DEFAULT_NAME = "web.html"


@click.command(name="web", context_settings=dict(CONTEXT_SETTINGS))
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    required=True,
    help="The machine of this topology file.",
)
@click.option("--sips", type=COUNT, metavar="N", help="SIPs, instead of those of the file.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"The page; by default {DEFAULT_NAME}.",
)
def web_command(topology: Path, sips: int | None, out: Path | None) -> int:
    """Write a page with the SIPs of a topology file: one HTML file, without network."""
    if find_spec("bokeh") is None:
        raise UsageError("web: the page is drawn by bokeh: pip install 'kernbench[web]'")
    path = out or Path(DEFAULT_NAME)
    html = _topology_html(topology, sips)
    write_output(path, html.encode())
    print_lines([f"{path}: {len(html.encode()):,} B"])
    return 0


def _topology_html(topology: Path, sips: int | None) -> str:
    # Imported on demand: Bokeh is an extra, and takes a second to import.
    from kernbench.web.topology_page import topology_page
    from runtime.model.topology import load_topology

    return topology_page(load_topology(topology, sips), topology.name)
