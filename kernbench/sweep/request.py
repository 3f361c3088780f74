"""The request for a sweep: every point is checked before the first one runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.plan import ProgramSpec
from kernbench.command.run_request import module_name
from kernbench.points.driver import PointOptions
from kernbench.sweep.columns import TIME
from kernbench.sweep.figures import AUTO, PARETO, selected_plot
from kernbench.sweep.files import SweepDescription
from kernbench.sweep.keys import ConfigTexts
from kernbench.sweep.measurement import SweepMeasurement, program_sources
from kernbench.sweep.parameters import (
    argument_parameter,
    key_parameter,
    require_different,
    sips_parameter,
)
from kernbench.sweep.points import SweepPoint, sweep_points
from runtime.core.bench_registry import Bench, Entry, Study
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError

NO_PLOT = "none"


@dataclass(frozen=True)
class SweepOptions:
    """The arguments of the command line; the fields are its options.

    `arguments` are given to a script in every point, `set` and `arg` the parameters as text.
    """

    program: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    as_cuda: bool = False
    set: tuple[str, ...] = ()
    arg: tuple[str, ...] = ()
    sips: str | None = None
    zip: bool = False
    topology: Path | None = None
    ccl: Path | None = None
    data: bool = True
    metric: str = TIME
    plot: str = AUTO


@dataclass(frozen=True)
class SweepRequest:
    """A sweep, all points of which are valid."""

    measurement: SweepMeasurement
    points: tuple[SweepPoint, ...]
    description: SweepDescription
    options: PointOptions
    out: Path | None


@dataclass(frozen=True)
class FigureRequest:
    """The figure of a sweep, drawn again; None stands for the choice of the sweep."""

    directory: Path
    metric: str | None = None
    plot: str | None = None


def sweep_request(
    given: SweepOptions,
    options: PointOptions,
    out: Path | None,
    bench_of: Callable[[str], Entry],
) -> SweepRequest:
    """The sweep of a command line; `bench_of` finds a bench by its name.

    Raises `UsageError` or `ConfigError` in one line for anything that no point could run with.
    """
    program, bench = _program(given, bench_of)
    texts = _texts(given.topology, given.ccl)
    parameters = [
        *(key_parameter(texts, text) for text in given.set),
        *(argument_parameter(text, bench) for text in given.arg),
        *([] if given.sips is None else [sips_parameter(given.sips)]),
    ]
    require_different(parameters)
    swept = tuple(each for each in parameters if len(each.values) > 1)
    fixed = tuple(each for each in parameters if len(each.values) == 1)
    points = sweep_points(swept, is_zip=given.zip)
    _check_plot(given, len(swept))
    measurement = SweepMeasurement(
        program, texts, swept, fixed, given.data, program_sources(program)
    )
    _check(measurement, points, bench)
    if options.resume and out is None:
        raise UsageError("--resume needs --out DIR, the directory of the sweep")
    description = _description(given, measurement)
    return SweepRequest(measurement, tuple(points), description, options, out)


def _check_plot(given: SweepOptions, swept: int) -> None:
    """Raise `UsageError` for a plot that the sweep cannot have, as far as that is certain."""
    if given.plot != NO_PLOT:
        # Names of columns may have commas.
        metrics = 2 if "," in given.metric and given.plot in (AUTO, PARETO) else 1
        is_grid = not given.zip or swept == 1
        selected_plot(given.plot, keys=swept, is_grid=is_grid, metrics=metrics)


def _program(
    given: SweepOptions, bench_of: Callable[[str], Entry]
) -> tuple[ProgramSpec, Bench | None]:
    """The program of the ranks, and the bench if it is one."""
    name = given.program
    if given.module:
        module = module_name(name)
        return ProgramSpec("module", module, module, {}, given.arguments, given.as_cuda), None
    script = Path(name)
    if script.is_file():
        path = str(script.resolve())
        return ProgramSpec("script", name, path, {}, given.arguments, given.as_cuda), None
    if script.suffix == ".py":
        raise UsageError(f"no such script: {name!r}")
    bench = bench_of(name)
    if isinstance(bench, Study):
        raise UsageError(f"{bench.name} is a study, which has points of its own")
    if given.arguments:
        raise UsageError(
            f"{given.arguments[0]!r}: the flags of a bench are given by --arg --NAME=VALUES"
        )
    if given.as_cuda:
        raise UsageError("--as-cuda is an option for a script")
    flags = {flag.name: flag.default for flag in bench.flags}
    return ProgramSpec("bench", bench.name, bench.program, flags), bench


def _texts(topology: Path | None, ccl: Path | None) -> ConfigTexts:
    files = [
        (str(given or path.name), read_text(path))
        for given, path in (
            (topology, topology or default_file("topology.yaml")),
            (ccl, ccl or default_file("ccl.yaml")),
        )
    ]
    return ConfigTexts(*files[0], *files[1])


def _check(
    measurement: SweepMeasurement, points: Sequence[SweepPoint], bench: Bench | None
) -> None:
    """Raise `UsageError` or `ConfigError` for the first point that no run could have."""
    for point in points:
        plan = measurement.plan(point)
        if bench is not None and bench.check is not None:
            try:
                bench.check(plan.config.ccl, **plan.program.arguments)
            except UsageError as error:
                raise UsageError(f"{point}: {error}") from error


def _description(given: SweepOptions, measurement: SweepMeasurement) -> SweepDescription:
    return SweepDescription(
        program=given.program,
        arguments=given.arguments,
        swept=measurement.swept,
        fixed=measurement.fixed,
        zip=given.zip,
        topology=measurement.texts.topology_file,
        ccl=measurement.texts.ccl_file,
        data=given.data,
        metric=given.metric,
        plot=given.plot,
        configuration=measurement.configuration(),
    )
