"""The plan of a run: configuration, program, and the distribution of SIPs to LPs.

It is complete and checked before the first process starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runtime.ccl.config import CclConfig, parse_ccl
from runtime.core.bench_registry import Scalar
from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.section import config_hash
from runtime.core.errors import UsageError
from runtime.model.topology import Topology, parse_topology
from runtime.wire.control import SCRIPT_KINDS, Job
from runtime.wire.environment import ccl_trace_requested


@dataclass(frozen=True)
class RunConfig:
    """Both configuration files, their names and texts, and their checked values.

    A text is empty where the values are not those of a file.
    """

    topology_file: str
    topology_text: str
    topology: Topology
    ccl_file: str
    ccl_text: str
    ccl: CclConfig

    @property
    def hash(self) -> str:
        """The hash that every LP must compute from the values that it has received."""
        # Over values, not over text: a comment in a file must not make two runs differ.
        return config_hash(self.topology, self.ccl.file)


def load_config(
    topology: Path | None,
    ccl: Path | None,
    sips: int | None,
    directories: Sequence[str] = (),
) -> RunConfig:
    """Read both files, by default those that ship; `sips` overrides the count of the topology.

    Modules of collective algorithms are searched in `directories` and then on the import path.
    Raises `ConfigError`.
    """
    topology_file = topology or default_file("topology.yaml")
    ccl_file = ccl or default_file("ccl.yaml")
    topology_text, ccl_text = read_text(topology_file), read_text(ccl_file)
    return RunConfig(
        topology_file=str(topology_file),
        topology_text=topology_text,
        topology=parse_topology(topology_text, str(topology_file), sips),
        ccl_file=str(ccl_file),
        ccl_text=ccl_text,
        ccl=parse_ccl(ccl_text, str(ccl_file), directories=directories),
    )


@dataclass(frozen=True)
class ProgramSpec:
    """The program of every rank. `kind` is `bench`, `script`, `module` or `function`; `path` is
    `Job.program`.

    `name` is the user's name of it: of a bench, module or function, or the path of a script as
    given. `as_cuda` maps the names of CUDA in PyTorch to the device.
    """

    kind: str
    name: str
    path: str = ""
    arguments: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    argv: tuple[str, ...] = ()
    as_cuda: bool = False

    @property
    def is_script(self) -> bool:
        """Whether it runs as `__main__`: a script, or a module as with `python -m`."""
        return self.kind in SCRIPT_KINDS


@dataclass(frozen=True)
class Plan:
    """The plan of one run. `by_cores`: the cores of the machine gave the number of processes.

    `timeout_s` limits the silence of an LP, 0 means no limit, None that of
    `coordinator.watch.watch` and of the process groups. After the end of the run its processes have
    `exit_s` to exit before they are killed. The LPs send their op logs and records with `trace`,
    the records alone with `records`, the memories and host writes that `coordinator.verify` replays
    with `verify`, and every slot that a kernel sends or receives with `ccl_trace`, which an
    environment variable sets.
    """

    config: RunConfig
    program: ProgramSpec
    procs: int
    by_cores: bool = False
    data: bool = True
    trace: bool = True
    records: bool = False
    timeout_s: float | None = None
    exit_s: float = 10.0
    jitter_ms: float = 0.0
    jitter_seed: int = 0
    delay_us: float | None = None
    verify: bool = False
    ccl_trace: bool = field(default_factory=ccl_trace_requested)

    def __post_init__(self) -> None:
        if self.verify and not self.data:
            raise UsageError(
                "--verify-data with --no-data: a run without data has no results to verify"
            )
        if self.verify and not self.trace:
            raise UsageError(
                "--verify-data with --no-trace: the op log, which is executed once more, is not "
                "collected"
            )
        if not 1 <= self.procs <= self.sips:
            raise UsageError(
                f"procs is {self.procs}: {self.sips} SIPs can be dealt to 1 to {self.sips} "
                "processes"
            )
        # More ranks than SIPs end the command before the run.
        self.config.ccl.world_size(self.sips, self.program.arguments.get("algorithm"))

    @property
    def sips(self) -> int:
        """Number of SIPs."""
        return self.config.topology.system.sips.count

    @property
    def world_size(self) -> int:
        """Number of ranks, which the first SIPs have."""
        return self.config.ccl.world_size(self.sips, self.program.arguments.get("algorithm"))

    @property
    def sips_of_lp(self) -> tuple[tuple[int, ...], ...]:
        """The SIPs of every LP: contiguous blocks whose sizes differ by at most one."""
        # The integer division spreads the remainder evenly. Neighbouring SIPs share an LP, so most
        # links of a ring or grid stay inside LPs.
        bounds = [lp * self.sips // self.procs for lp in range(self.procs + 1)]
        return tuple(tuple(range(bounds[lp], bounds[lp + 1])) for lp in range(self.procs))

    @property
    def job(self) -> Job:
        """The part of the plan that is sent to the LPs."""
        return Job(
            topology=self.config.topology.encoded(),
            ccl=self.config.ccl.file.encoded(),
            program=self.program.path,
            kind=self.program.kind,
            arguments=dict(self.program.arguments),
            argv=self.program.argv,
            data=self.data,
            trace=self.trace,
            jitter_seed=self.jitter_seed,
            jitter_ms=self.jitter_ms,
            delay_us=self.delay_us,
            verify=self.verify,
            ccl_trace=self.ccl_trace,
            as_cuda=self.program.as_cuda,
            records=self.trace or self.records,
        )
