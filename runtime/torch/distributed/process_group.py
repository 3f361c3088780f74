"""The default process group: who takes part in collectives, by which algorithm, through which queues."""

from runtime.ccl.config import AlgorithmConfig
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.errors import ConfigError, nearest
from runtime.rank_state import ProcessGroup, RankState, running_rank
from runtime.requests import IpcqInitMsg

BACKEND = "ahbm"


def init_process_group(backend: str = BACKEND, *, algorithm: str | None = None) -> None:
    """Join the default process group and install its queues on the PEs: this takes simulated time.

    `algorithm` is the one in `ccl.yaml` that its collectives use, by default `defaults.algorithm`. The queues outlive the
    group: a later one with the same algorithm finds them installed, one with another is a `RuntimeError`. `ValueError` for
    an unknown backend or if the group exists already, `ConfigError` if the files do not fit together.
    """
    state = running_rank()
    if backend != BACKEND:
        raise ValueError(f"Invalid backend: {backend!r}{nearest(backend, [BACKEND])}")
    if state.process_group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    group = _group(state, algorithm)
    if state.installed is not None:
        if state.installed.group != group:
            installed = state.installed.group.algorithm.name
            raise RuntimeError(
                f"the queues of algorithm {installed!r} are on the PEs of this rank, and a PE takes one installation: "
                f"a process group with algorithm {group.algorithm.name!r} needs a run of its own"
            )
        state.process_group = state.installed
        return
    plan = InstallPlan(group, state.ccl.source)
    state.process_group = state.installed = ProcessGroup(group, plan)
    installs = plan.of_sip(state.rank)
    for cube, pe in installs:
        state.memories.reserve_rings(group.algorithm.buffer_kind, cube, pe, plan.ring_bytes_a_pe)
    cubes = sorted({cube for cube, _ in installs})
    requests = [IpcqInitMsg(cube, tuple((pe, pairs) for (at, pe), pairs in installs.items() if at == cube)) for cube in cubes]
    state.device.wait(state.device.submit(requests, "installing the queues of the process group"))


def _group(state: RankState, algorithm: str | None) -> Group:
    config = state.ccl.resolve(algorithm)
    sips = state.topology.sips
    world_size = config.ranks(sips)
    where = f"algorithms.{config.name}"
    if world_size > sips or state.rank >= world_size:
        raise ConfigError(state.ccl.source, f"{where}.world_size", f"is {world_size}, but rank {state.rank} of {sips} joins")
    group = Group(state.rank, world_size, config, state.topology)
    if not group.fits:
        problem = f"{group.sip_topology} joins {group.grid_w} x {group.grid_h} SIPs, the world size is {world_size}"
        raise ConfigError(state.ccl.source, f"{where}.topology", problem)
    if group.root_cube >= state.topology.cubes:
        problem = f"is {group.root_cube}, the last cube is {state.topology.cubes - 1}"
        raise ConfigError(state.ccl.source, f"{where}.root_cube", problem)
    return group


def destroy_process_group() -> None:
    """Leave the process group. Its queues stay installed, and a later group with the same algorithm uses them again."""
    running_rank().process_group = None


def is_initialized() -> bool:
    """Whether this rank is in a process group."""
    return running_rank().process_group is not None


def get_rank() -> int:
    """This rank in the process group."""
    return joined_group().group.rank


def get_world_size() -> int:
    """How many ranks the process group has."""
    return joined_group().group.world_size


def get_backend() -> str:
    """The backend of the process group."""
    joined_group()
    return BACKEND


def get_algorithm() -> AlgorithmConfig:
    """The algorithm of the process group, as `ccl.yaml` configures it."""
    return joined_group().group.algorithm


def joined_group() -> ProcessGroup:
    """The process group of this rank; `ValueError` before `init_process_group`."""
    group = running_rank().process_group
    if group is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group
