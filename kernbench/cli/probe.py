"""`kernbench probe`: the time of one transfer on each kind of route, against its closed form."""

from collections.abc import Sequence
from pathlib import Path

import click

from kernbench.command.options import CONTEXT_SETTINGS
from kernbench.measure.transfers.cases import NAMES, ProbeCase, ProbeCases
from kernbench.measure.transfers.files import write_csv, write_json
from kernbench.measure.transfers.measure import SWEEP_BYTES, ProbeRow, ProbeTransfer, measure
from kernbench.measure.transfers.tables import judgement, print_groups, print_sweeps, print_trace
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError, nearest
from runtime.core.output import UnwrittenOutputs, clear_output
from runtime.model.jitter import NOT_MEASURED, jitter_bounds, nominal_text
from runtime.model.topology import Topology, parse_topology

DEFAULT_BYTES = 4096
_GROUPS = {
    group: ", ".join(name for name in NAMES if NAMES[name] == group) for group in NAMES.values()
}
# The first character makes click keep the line breaks.
_EPILOG = "\b\n" + "\n".join(
    ["Cases:", *(f"  {group}: {names}" for group, names in _GROUPS.items())]
)


@click.command(name="probe", context_settings=dict(CONTEXT_SETTINGS), epilog=_EPILOG)
@click.option(
    "--case",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only this case; may be given several times.",
)
@click.option(
    "--bytes",
    "nbytes",
    type=click.IntRange(1),
    help=f"Bytes of each transfer, by default {DEFAULT_BYTES}.",
)
@click.option(
    "--sweep", is_flag=True, help="Sizes from 4 KiB to 1 MiB instead: how bandwidth saturates."
)
@click.option(
    "--trace",
    is_flag=True,
    help="Also every hop of each transfer, with the time of its head and tail.",
)
@click.option(
    "--sips",
    type=click.IntRange(1),
    help="SIPs, instead of system.sips.count of the topology file.",
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    help="Topology file, instead of that of kernbench.",
)
@click.option(
    "--csv", "csv_path", type=click.Path(path_type=Path), help="Write the rows to this file."
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    help="Write the rows and their hops to this file.",
)
def probe_command(
    names: Sequence[str],
    nbytes: int | None,
    *,
    sweep: bool,
    trace: bool,
    sips: int | None,
    topology: Path | None,
    csv_path: Path | None,
    json_path: Path | None,
) -> int:
    """Measure one transfer on each kind of route.

    Each transfer is simulated alone and compared with its closed form, latency = overhead + wire +
    drain: the delays of all components on the route and back, those of the wires, and the time of
    the bytes at the bottleneck. Exit code 1 if one differs.
    """
    source = topology or default_file("topology.yaml")
    text = read_text(source)
    topology_of_file = parse_topology(text, str(source), sips)
    text = nominal_text(topology_of_file, text)
    cases = ProbeCases(parse_topology(text, str(source), sips))
    transfers = _transfers(cases, _chosen(cases, names), _sizes(nbytes, sweep=sweep))
    for option, path in (("--csv", csv_path), ("--json", json_path)):
        if path is not None:
            clear_output(path, f"probe: {option}")
    rows = measure(cases, text, transfers)
    left_out = {} if names else cases.left_out
    notes = _notes(cases.topology, jitter_bounds(topology_of_file))
    _print(rows, cases, (str(topology or source.name), notes), left_out, sweep=sweep, trace=trace)
    unwritten = UnwrittenOutputs()
    if csv_path is not None:
        with unwritten.attempt():
            write_csv(csv_path, rows)
    if json_path is not None:
        with unwritten.attempt():
            write_json(json_path, str(source), cases.topology.sips, rows, left_out)
    unwritten.check()
    return 0 if all(row.agrees for row in rows) else 1


def _chosen(cases: ProbeCases, names: Sequence[str]) -> list[ProbeCase]:
    """The cases of these names, or all; `UsageError` for a name that the topology lacks."""
    for name in names:
        if name not in NAMES:
            raise UsageError(f"probe: --case: unknown case {name!r}{nearest(name, NAMES)}")
        if name in cases.left_out:
            raise UsageError(f"probe: --case {name}: {cases.left_out[name]}")
    return [case for case in cases.cases if not names or case.name in names]


def _sizes(nbytes: int | None, *, sweep: bool) -> Sequence[int]:
    if sweep and nbytes is not None:
        raise UsageError(f"probe: --sweep has sizes of its own: leave out --bytes {nbytes}")
    return SWEEP_BYTES if sweep else (nbytes or DEFAULT_BYTES,)


def _transfers(
    cases: ProbeCases, chosen: Sequence[ProbeCase], sizes: Sequence[int]
) -> list[ProbeTransfer]:
    for case in chosen:
        capacity_bytes = cases.capacity_bytes(case)
        if sizes[-1] > capacity_bytes:
            raise UsageError(
                f"probe: {case.name}: {sizes[-1]} bytes are more than "
                f"the {capacity_bytes} bytes that fit"
            )
    return [
        ProbeTransfer(case, operation, size)
        for case in chosen
        for operation in case.directions
        for size in sizes
    ]


def _notes(topology: Topology, jitter: str) -> list[str]:
    """Notes on the measured machine: its parts of their own, and the jitter that it lacks."""
    notes = list[str]()
    if topology.overrides:
        notes.append(f"parts of their own: {', '.join(topology.overrides)}")
    if jitter:
        notes.append(NOT_MEASURED.format(jitter))
    return notes


def _print(
    rows: list[ProbeRow],
    cases: ProbeCases,
    titled: tuple[str, Sequence[str]],
    left_out: dict[str, str],
    *,
    sweep: bool,
    trace: bool,
) -> None:
    source, notes = titled
    sips = cases.topology.system.sips
    print(f"# probe {source}: {sips.count} SIPs, {sips.topology} {sips.fabric}")
    for note in notes:
        print(f"# {note}")
    print()
    (print_sweeps if sweep else print_groups)(rows)
    for row in rows if trace else ():
        print_trace(row)
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}")
    print(judgement(rows))
