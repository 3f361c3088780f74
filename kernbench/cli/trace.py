"""`kernbench trace`: the timeline of a run for Perfetto, or for Holistic Trace Analysis."""

from pathlib import Path

import click

from kernbench.cli.recorded import consistent, default_output, opened
from kernbench.command.options import CONTEXT_SETTINGS
from kernbench.explain.trace.kineto_file import write_kineto
from kernbench.explain.trace.perfetto_files import write_perfetto
from kernbench.explain.trace.selection import select
from runtime.core.errors import UsageError
from runtime.core.output import print_lines

MOST_SLICES = 500_000


@click.command(name="trace", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["perfetto", "kineto"]),
    default="perfetto",
    show_default=True,
    help="kineto: a file for each rank, as PyTorch's profiler writes it.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory of the files, by default the run's."
)
@click.option("--ranks", metavar="LIST", help="Only these ranks: 0,2-5.")
@click.option(
    "--time",
    "interval",
    metavar="FROM..TO",
    help="Only this interval of simulated time: 1.5us..2us, ..800ns.",
)
@click.option(
    "--split",
    "most_slices",
    type=click.IntRange(1_000),
    metavar="COUNT",
    help=f"Operations and steps in a file for Perfetto, by default {MOST_SLICES:,}; what is longer "
    "becomes several files.",
)
def trace_command(
    run: Path,
    form: str,
    out: Path | None,
    ranks: str | None,
    interval: str | None,
    most_slices: int | None,
) -> int:
    """Write the timeline of RUN, the directory of a run.

    Perfetto: open the file at ui.perfetto.dev. Kineto: give the directory of the files to Holistic
    Trace Analysis.
    """
    if form == "kineto" and most_slices is not None:
        raise UsageError(
            "trace: --split belongs to --format perfetto; Kineto has one file for each rank"
        )
    records = opened(run)
    selection = select(ranks, interval, records.run.sips, records.total_ps)
    if out is None:
        for path in (run / "kineto", *run.glob("trace*.pftrace"), *run.glob("kineto/rank*.json")):
            default_output(path)
    directory = _directory(out or (run / "kineto" if form == "kineto" else run))
    with consistent(run):
        if form == "kineto":
            for sip in selection.sips:
                path = directory / f"rank{sip}.json"
                print_lines([f"{path}  {write_kineto(records, sip, selection, path):,} events"])
            return 0
        for written in write_perfetto(records, selection, directory, most_slices or MOST_SLICES):
            times = f"{_in_ns(written.begin_ps)} to {_in_ns(written.end_ps)}"
            print_lines([f"{written.path}  {written.events:,} events, {times}"])
    return 0


def _directory(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot create {directory}: {error.strerror}") from error
    return directory


def _in_ns(time_ps: int) -> str:
    return f"{time_ps / 1_000:,.3f} ns"
