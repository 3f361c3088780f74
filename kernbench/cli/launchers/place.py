"""The place of a process among those that a launcher has started: rank, number, run.

Each launcher describes it by environment variables of its own. The variables of torchrun come
first, since torchrun may itself run under Slurm or MPI; then those of MPI, which `srun` may start;
options of the command line come before all of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runtime.core.errors import UsageError

TORCHRUN, OPEN_MPI, PMI, SLURM, BY_HAND = "torchrun", "Open MPI", "PMI", "Slurm", "by hand"


@dataclass(frozen=True)
class SiteLauncher:
    """The variables of a launcher.

    `runs` have a text that all processes of one run share, and no other run of the host at the same
    time. `local_size` has the number of processes on this host, where the launcher gives it.
    """

    name: str
    rank: str
    world_size: str
    local_size: str
    runs: tuple[str, ...]


LAUNCHERS = (
    # The section "Environment Variables" of the manual of torchrun.
    SiteLauncher(
        TORCHRUN,
        "RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    ),
    # Open MPI's FAQ on running jobs; the id of a job has a name of its own in versions 4 and 5.
    SiteLauncher(
        OPEN_MPI,
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"),
    ),
    # The process manager interface of MPICH, which Hydra and Intel MPI have.
    SiteLauncher(PMI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ("PMI_ID_JOB", "HYDI_CONTROL_FD")),
    # The section "OUTPUT ENVIRONMENT VARIABLES" of srun(1).
    SiteLauncher(SLURM, "SLURM_PROCID", "SLURM_NTASKS", "", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
_OF_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""RANK and WORLD_SIZE alone are variables of many programs."""
_SLURM_PORTS, _SLURM_PORT_COUNT = 20_000, 10_000
"""Below the ports which Linux gives to connections (32,768 and more)."""


@dataclass(frozen=True)
class Place:
    """A process of a launcher: `rank` of `world_size`, in the run with the text `run`.

    `local_size` is the number of processes on this host, None where the launcher does not give it.
    """

    launcher: str
    rank: int
    world_size: int
    run: str
    local_size: int | None = None

    @property
    def has_one_host(self) -> bool:
        """Whether all processes may be on this host."""
        return self.local_size in (None, self.world_size)


def place_of(environment: Mapping[str, str], rank: int | None, world_size: int | None) -> Place:
    """The place of this process; `rank` and `world_size` are the options, if they are given.

    Raises `UsageError` where neither options nor a launcher give it, or where it is impossible.
    """
    if (rank is None) != (world_size is None):
        raise UsageError(
            "--rank and --world belong together: the number of this process, from 0, and the "
            "number of all processes"
        )
    if rank is not None and world_size is not None:
        return _checked(Place(BY_HAND, rank, world_size, ""), "--rank", "--world")
    for launcher in LAUNCHERS:
        if launcher.rank in environment and _is_there(launcher, environment):
            return _checked(_read(launcher, environment), launcher.rank, launcher.world_size)
    raise UsageError(
        "which process is this? Start `kernbench node` by torchrun, srun or mpirun, or give --rank "
        "and --world: 0 and 8 for the first of eight"
    )


def _is_there(launcher: SiteLauncher, environment: Mapping[str, str]) -> bool:
    return launcher.name != TORCHRUN or _OF_TORCHRUN in environment


def _read(launcher: SiteLauncher, environment: Mapping[str, str]) -> Place:
    def number(name: str) -> int:
        text = environment.get(name, "")
        if not text.isdecimal():
            raise UsageError(f"{name} of {launcher.name} is {text!r}: expected a number")
        return int(text)

    world_size = number(launcher.world_size)
    if launcher.name == SLURM:
        local_size = world_size if number_of_hosts(environment) == 1 else 0
    else:
        local_size = number(launcher.local_size) if launcher.local_size in environment else None
    run = "\n".join(environment.get(name, "") for name in launcher.runs)
    return Place(launcher.name, number(launcher.rank), world_size, run, local_size)


def _checked(place: Place, rank: str, world_size: str) -> Place:
    if not 0 <= place.rank < place.world_size:
        raise UsageError(
            f"{rank} is {place.rank} and {world_size} {place.world_size}: ranks count from 0 to "
            f"{place.world_size - 1}"
        )
    return place


def number_of_hosts(environment: Mapping[str, str]) -> int:
    """The number of hosts of a step of Slurm."""
    for name in ("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
        text = environment.get(name, "")
        if text.isdecimal():
            return int(text)
    return 1


def slurm_master(environment: Mapping[str, str]) -> str | None:
    """HOST:PORT from the variables of a step of Slurm: its first host, and a port from its job.

    None where they are missing. Two steps of a job that run at the same time on one first host have
    different ports, since the number of the step counts too.
    """
    hosts = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    job = environment.get("SLURM_JOB_ID", "")
    if not hosts or not job.isdecimal():
        return None
    step = environment.get("SLURM_STEP_ID", "")
    number = int(job) + (int(step) if step.isdecimal() else 0)
    return f"{first_host(hosts)}:{_SLURM_PORTS + number % _SLURM_PORT_COUNT}"


def first_host(hosts: str) -> str:
    """The first host of a list of Slurm: `gpu[007-9,12]-a,login` is `gpu007-a` and others."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])+", hosts)
    name = hosts if first is None else first.group()
    # In brackets are numbers and ranges of numbers, perhaps with zeros in front.
    return re.sub(r"\[(\d+)[^\]]*\]", r"\1", name)
