"""Measures a point: one run with its values, in the process that measures it.

The SIPs of a bench share one process, which is cheapest; the ranks of a script have a process each.
Nothing of the run is kept but its row. What ranks print goes to the standard output.
"""

import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from coordinator.launch.launcher import InterpreterLauncher
from coordinator.launch.placement import Placement
from coordinator.plan import Plan, ProgramSpec, RunConfig
from coordinator.session import RunResult, Session
from coordinator.watch.failure import (
    CodeDiffersError,
    Interrupted,
    LpDied,
    LpSilent,
    RankFailed,
    RunStalled,
)
from kernbench.command.exit_codes import print_note
from kernbench.command.options import SimulationOptions
from kernbench.command.program_files import program_file, read_program
from kernbench.command.simulation import import_folders, plan_of_config
from kernbench.points.task import ATTEMPTS, OtherCodeError
from kernbench.sweep.keys import ConfigFile, ConfigTexts
from kernbench.sweep.parameters import Parameter, ParameterKind
from kernbench.sweep.points import SweepPoint
from kernbench.sweep.row import SweepRow, row_of
from kernbench.sweep.values import Value, plain
from runtime.ccl.config import CclConfig, ccl_of_values
from runtime.core.code.package_check import check_packages
from runtime.core.config.config_file import with_values
from runtime.core.errors import KernbenchError, ProtocolError, RunAborted, UsageError
from runtime.core.output import print_lines
from runtime.core.sha256 import sha256_hex, sha256_of_file
from runtime.model.topology import Topology, topology_of_values
from runtime.wire.control import Status
from runtime.wire.reports import in_order_of_time

_OF_HOST = (LpSilent, RunStalled, CodeDiffersError, ProtocolError, UsageError)
"""Errors which another attempt may not have."""
_Setting = tuple[Parameter, Value]


@dataclass(frozen=True)
class SweepMeasurement:
    """The common part of all points: the program, the files, the parameters, the options.

    `program` has the defaults of the flags of a bench, and the fixed arguments of a script. `fixed`
    are the parameters with one value, in every point; `swept` those which the points have.
    `sources` are the files of the user's program, and their hashes.
    """

    program: ProgramSpec
    texts: ConfigTexts
    swept: tuple[Parameter, ...]
    fixed: tuple[Parameter, ...] = ()
    data: bool = True
    sources: tuple[tuple[str, str], ...] = ()

    def measure(self, point: SweepPoint) -> SweepRow:
        """The row of a point.

        An error of the program or of the model is the fault of the row. Raises errors that do
        not depend on the point: a process that dies or hangs, too little memory of the host,
        Ctrl-C.
        """
        _require_equal(self.sources)
        plan = self.plan(point)
        result = _run(plan)
        print_lines(map(str, in_order_of_time(result.collected.prints)))
        if result.is_complete:
            return row_of(plan, result)
        assert result.error is not None, "a run is complete, or has an error"
        _print_whole(result.error)
        _raise_if_of_host(result.error)
        return SweepRow(fault=str(result.error).splitlines()[0])

    def plan(self, point: SweepPoint) -> Plan:
        """The plan of the run of a point; `ConfigError` or `UsageError` for an invalid one."""
        values = dict(zip(point.names, point.values, strict=True))
        settings = [
            *((each, each.values[0]) for each in self.fixed),
            *((each, values[each.name]) for each in self.swept),
        ]
        directories = import_folders(self.program)
        check_packages(*directories)
        of_topology = _of_kinds(settings, ParameterKind.TOPOLOGY, ParameterKind.SIPS)
        config = RunConfig(
            topology_file=self.texts.topology_file,
            topology_text="",
            topology=_topology(self.texts, of_topology),
            ccl_file=self.texts.ccl_file,
            ccl_text="",
            ccl=_ccl(self.texts, _of_kinds(settings, ParameterKind.CCL), directories),
        )
        program = replace(
            self.program,
            arguments={**self.program.arguments, **_flags(settings)},
            argv=(*self.program.argv, *_arguments(settings)),
        )
        options = SimulationOptions(
            procs=None if program.is_script else 1, data=self.data, trace=False
        )
        return replace(plan_of_config(options, program, config), records=True)

    def configuration(self) -> str:
        """A hash of everything that all points have in common."""
        common = [
            self.program.kind,
            self.program.path,
            dict(self.program.arguments),
            self.program.argv,
            self.program.as_cuda,
            self.sources,
            [self.texts.content(each) for each in ConfigFile],
            sorted((each.target, each.values) for each in self.fixed),
            self.data,
        ]
        return sha256_hex(msgspec.json.encode(common))


def program_sources(program: ProgramSpec) -> tuple[tuple[str, str], ...]:
    """The files of a program of the user with their SHA-256: what it imports from its folder too.

    The benches of kernbench have none: they are part of its own code.
    """
    file = program_file(program)
    files = sorted(read_program(file).files) if file else ()
    return tuple((str(each), sha256_of_file(each)) for each in files)


def _require_equal(sources: Sequence[tuple[str, str]]) -> None:
    for file, expected in sources:
        path = Path(file)
        if not path.is_file():
            raise OtherCodeError(f"it has no file {file}")
        if (actual := sha256_of_file(path)) != expected:
            raise OtherCodeError(
                f"its file {file} has the hash {actual[:12]}, and the one here {expected[:12]}"
            )


def _of_kinds(settings: Sequence[_Setting], *kinds: ParameterKind) -> tuple[_Setting, ...]:
    return tuple(each for each in settings if each[0].kind in kinds)


# Points differ in a few values: most share one of the two files with others of their process.
@lru_cache(maxsize=16)
def _topology(texts: ConfigTexts, settings: tuple[_Setting, ...]) -> Topology:
    content = _content(texts, ConfigFile.TOPOLOGY, settings)
    return topology_of_values(content, _source(texts.topology_file, settings))


@lru_cache(maxsize=16)
def _ccl(
    texts: ConfigTexts, settings: tuple[_Setting, ...], directories: tuple[str, ...]
) -> CclConfig:
    content = _content(texts, ConfigFile.CCL, settings)
    return ccl_of_values(content, _source(texts.ccl_file, settings), directories=directories)


def _content(
    texts: ConfigTexts, file: ConfigFile, settings: Sequence[_Setting]
) -> Mapping[str, Any]:
    values = {parameter.target: value for parameter, value in settings}
    return with_values(texts.content(file), values)


def _source(file: str, settings: Sequence[_Setting]) -> str:
    """The name of a file with other values, for the errors of its rules."""
    changed = " ".join(f"{parameter.name}={plain(value)}" for parameter, value in settings)
    return f"{file} with {changed}" if changed else file


def _flags(settings: Sequence[_Setting]) -> dict[str, Any]:
    return {each.target: value for each, value in _of_kinds(settings, ParameterKind.FLAG)}


def _arguments(settings: Sequence[_Setting]) -> Iterator[str]:
    for each, value in _of_kinds(settings, ParameterKind.ARGUMENT):
        yield each.target if value is True else f"{each.target}={plain(value)}"


def _run(plan: Plan) -> RunResult:
    """The result of a run; one whose process is killed is made again, as often as a point is."""
    cause = ""
    for _ in range(ATTEMPTS):
        result = Session(plan, InterpreterLauncher(), _NoProgress()).run()
        error = result.error
        if result.is_complete or not isinstance(error, LpDied) or error.signal_name is None:
            return result
        cause = error.cause
        print_note(str(error))
    # Without the id of the process, which differs from run to run.
    raise RunAborted(f"its process has died {ATTEMPTS} times ({cause}{_memory()})")


def _memory() -> str:
    """The limit of the memory of a process: one that exceeds it may end in any way."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY:
        return ""
    return f", with at most {limit >> 20} MiB of memory"


def _raise_if_of_host(error: KernbenchError) -> None:
    if isinstance(error, Interrupted):
        raise KeyboardInterrupt from error
    if isinstance(error, RankFailed) and error.failed.error.endswith("MemoryError"):
        raise MemoryError(str(error)) from error
    if isinstance(error, LpDied):
        # Without the id of the process, which differs from run to run.
        raise RunAborted(f"its process {error.cause}{_memory()}") from error
    if isinstance(error, _OF_HOST):
        raise error


def _print_whole(error: KernbenchError) -> None:
    """Print the error with the traceback of its rank, of which the fault has one line."""
    lines = [str(error)]
    if isinstance(error, RankFailed) and error.failed.traceback:
        lines.insert(0, error.failed.traceback.rstrip())
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


class _NoProgress:
    """Observes a run and shows nothing: the sweep has a progress of its own."""

    def launched(self, pids: tuple[int, ...]) -> None:
        pass

    def placed(self, placement: Placement, sips_of_lp: tuple[tuple[int, ...], ...]) -> None:
        pass

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        pass

    def ended(self) -> None:
        pass
