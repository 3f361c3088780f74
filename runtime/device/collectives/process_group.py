"""Process groups: the ranks that take part in collectives, their algorithm, and their queues."""

import os
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum

from runtime.ccl.config import AlgorithmConfig
from runtime.ccl.group import is_grid
from runtime.core.errors import ConfigError, nearest
from runtime.device.rank.queue_tables import install
from runtime.device.rank.rank_state import ProcessGroup, RankState, current_rank, running_rank

BACKEND = "ahbm"


class GroupMember(Enum):
    """The result of `new_group` on ranks outside the group."""

    NON_GROUP_MEMBER = "not a member"


Group = ProcessGroup | GroupMember | None
"""The `group` argument of a collective: a result of `new_group`, or None for the default group."""


class group:  # noqa: N801 - PyTorch's name
    """The named groups: the default one, and the result of `new_group` on ranks outside the
    group.
    """

    WORLD: Group = None
    NON_GROUP_MEMBER = GroupMember.NON_GROUP_MEMBER


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    *,
    algorithm: str | None = None,
) -> None:
    """Join the default process group and install its queues on the PEs, which takes simulated time.

    The run has started the ranks already, so the arguments of PyTorch must agree with it:
    `init_method` is `env://`, and `world_size` and `rank` are those of the run.

    `timeout` limits the wall time for which the program of a rank may compute while other ranks
    wait for it in a collective; by default, and with a limit on the command line, the limit of the
    run holds. A wait that cannot end is an error at once.

    `algorithm` is the algorithm of the group's collectives: one of `ccl.yaml`, or `auto` for its
    `selection`; by default `defaults.algorithm`. Queues outlive the group, and a later group with
    the same algorithm uses them again. The queues of other choices of `auto`, those of send and
    receive, and the tables of the section `queues` are installed at their first use. `ValueError`
    for an unknown backend or a second call, `ConfigError` if the configuration files contradict
    each other.
    """
    if current_rank.get(None) is None:
        raise _not_started(init_method, rank, world_size)
    state = running_rank()
    _check_backend(backend)
    limit_s = _seconds(timeout)
    if init_method not in {None, "env://"}:
        problem = "the run has started its ranks already; omit it or pass 'env://'"
        raise ValueError(f"init_method {init_method!r}: {problem}")
    if state.process_group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = algorithm or state.ccl.file.defaults.algorithm
    config = state.ccl.resolve(name)
    configured, started = config.ranks(state.topology.sips), state.world_size
    if configured != started:
        problem = (
            f"is {configured}, but the run has started {_ranks_counted(started)}; with another "
            "algorithm than defaults.algorithm, its world size must be that of the run"
        )
        raise ConfigError(state.ccl.source, state.ccl.world_size_key(config.name), problem)
    if world_size not in {-1, configured}:
        problem = f"but the run has started {_ranks_counted(configured)}; omit it"
        raise ValueError(f"init_process_group: world_size is {world_size}, {problem}")
    if rank not in {-1, state.rank}:
        problem = f"but this process is rank {state.rank} of {configured}; omit it"
        raise ValueError(f"init_process_group: rank is {rank}, {problem}")
    state.process_group = _make_group(state, "world", tuple(range(configured)), name, limit_s)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    *,
    algorithm: str | None = None,
) -> ProcessGroup | GroupMember:
    """A process group of some ranks of the default group, by default all; installing its queues
    takes simulated time.

    As in PyTorch, every rank of the default group must make the same groups in the same order,
    members or not: every rank computes the addresses of receive rings from them. Members are
    numbered in rising order of their global ranks. On other ranks the result is
    `GroupMember.NON_GROUP_MEMBER`. `algorithm` and `timeout` are by default those of the default
    group.
    `ValueError` for ranks outside the default group, or twice in the list.
    """
    state, default = running_rank(), default_group()
    _check_backend(backend)
    limit_s = default.timeout_s if timeout is None else _seconds(timeout)
    members = tuple(default.sips if ranks is None else sorted(ranks))
    if not members or len(set(members)) < len(members):
        raise ValueError(
            f"new_group of ranks {list(members)}: it takes at least one rank, and each once"
        )
    unknown = [rank for rank in members if rank not in default.sips]
    if unknown:
        known = f"the default process group has ranks {default.sips[0]} to {default.sips[-1]}"
        raise ValueError(f"new_group of ranks {list(members)}: {known}")
    # Counted on every rank, members or not: the name must be equal everywhere.
    state.groups += 1
    return (
        _make_group(state, f"group{state.groups}", members, algorithm or default.algorithm, limit_s)
        or GroupMember.NON_GROUP_MEMBER
    )


def _make_group(
    state: RankState, name: str, sips: tuple[int, ...], algorithm: str, limit_s: float
) -> ProcessGroup | None:
    """The group, with the queues of its first algorithm installed; None on ranks outside it."""
    names = state.ccl.used_by(algorithm, on_grid=is_grid(sips, state.topology))
    if state.process_group is None:
        # Kernels of users run in the default group. Its tables come last, so that those of its
        # algorithms lie where those of other groups do.
        names = (*names, *state.ccl.file.queues)
    tables = state.ring_allocator.tables(name, sips, names)
    for table in tables.values():
        if table.group.root_cube >= state.topology.cubes:
            problem = f"is {table.group.root_cube}, the last cube is {state.topology.cubes - 1}"
            key_path = f"{table.group.algorithm.key_path}.root_cube"
            raise ConfigError(state.ccl.source, key_path, problem)
    if state.rank not in sips:
        return None
    process_group = ProcessGroup(
        name=name,
        rank=sips.index(state.rank),
        sips=sips,
        algorithm=algorithm,
        tables=tables,
        default=state.process_group,
        timeout_s=limit_s,
        # The ranks meet at the start of the run, and where they make another group.
        called_s=0.0 if state.process_group is None else state.clock.total_s,
    )
    if limit_s:
        state.limited_groups = (*state.limited_groups, process_group)
    installing = install(process_group.base)
    if installing is not None:
        state.device.wait(installing)
    return process_group


def destroy_process_group(group: Group = None) -> None:
    """Leave a process group, by default all. Its queues stay installed, and a later group of the
    same ranks uses them again.
    """
    state, process_group = running_rank(), resolve_group(group)
    if process_group is None:
        return
    process_group.destroyed = True
    state.limited_groups = tuple(g for g in state.limited_groups if not _is_destroyed(g))
    if process_group is state.process_group:
        state.process_group = None


def is_available() -> bool:
    """Whether `torch.distributed` exists; always True."""
    return True


def is_initialized() -> bool:
    """Whether this rank is in a process group."""
    return running_rank().process_group is not None


def get_rank(group: Group = None) -> int:
    """The rank of this process in the group; -1 outside it."""
    process_group = resolve_group(group)
    return -1 if process_group is None else process_group.rank


def get_world_size(group: Group = None) -> int:
    """The number of ranks in the group; -1 on a rank outside it."""
    process_group = resolve_group(group)
    return -1 if process_group is None else process_group.world_size


def get_process_group_ranks(group: Group = None) -> list[int]:
    """The global ranks of the members, in the order of their ranks in the group."""
    return list(_member(group).sips)


def get_group_rank(group: Group, global_rank: int) -> int:
    """The rank in the group of a global rank; `ValueError` if it is not a member."""
    sips = _member(group).sips
    if global_rank not in sips:
        name = _member(group).name
        raise ValueError(
            f"Global rank {global_rank} is not part of group {name!r}, which has ranks {list(sips)}"
        )
    return sips.index(global_rank)


def get_global_rank(group: Group, group_rank: int) -> int:
    """The global rank of a rank of the group; `ValueError` if the group has no such rank."""
    sips = _member(group).sips
    if not 0 <= group_rank < len(sips):
        name = _member(group).name
        raise ValueError(
            f"Group rank {group_rank} is not part of group {name!r}, which has {len(sips)} ranks"
        )
    return sips[group_rank]


def get_backend(group: Group = None) -> str:
    """The backend of the process group."""
    resolve_group(group)
    return BACKEND


def get_algorithm(group: Group = None) -> AlgorithmConfig:
    """The algorithm of the process group with its parameters; with `auto` that of
    `selection.default`.
    """
    return _member(group).base.group.algorithm


def get_order(group: Group = None) -> list[int]:
    """The ranks of the group in the order in which its first algorithm numbers them, which follows
    the links between SIPs.

    For kernels with queues of their own: `global_E` of a ring leads from each rank of the list to
    the next one, and from the last to the first. On a ring of SIPs it is the order of ranks.
    """
    return list(_member(group).base.group.order)


def default_group() -> ProcessGroup:
    """The default process group of this rank; `ValueError` before `init_process_group`."""
    group = running_rank().process_group
    if group is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return group


def resolve_group(group: Group = None) -> ProcessGroup | None:
    """The process group for the argument `group`; None on a rank outside it."""
    if group is None:
        return default_group()
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    return _checked(group)


def _checked(group: object) -> ProcessGroup:
    if isinstance(group, ProcessGroup):
        if _is_destroyed(group):
            problem = f"{group.title} was destroyed; make another one with new_group"
            raise ValueError(f"Invalid process group specified: {problem}")
        return group
    problem = f"of type ProcessGroup, as new_group returns it, but got {type(group)} instead."
    raise TypeError(f"Invalid function argument. Expected parameter `group` {problem}")


def _is_destroyed(group: ProcessGroup) -> bool:
    return group.destroyed or (group.default is not None and group.default.destroyed)


def _member(group: Group) -> ProcessGroup:
    process_group = resolve_group(group)
    if process_group is None:
        raise ValueError(f"rank {running_rank().rank} is not a member of this group")
    return process_group


def _not_started(init_method: str | None, rank: int, world_size: int) -> Exception:
    """The error of PyTorch for the first variable that is missing outside a run, with a hint."""
    hint = (
        "start the script with `kernbench --sips N script.py`, or use torch.multiprocessing.spawn"
    )
    if init_method not in {None, "env://"}:
        return ValueError(f"init_method {init_method!r}: ranks do not meet at an address; {hint}")
    given = {"RANK": rank, "WORLD_SIZE": world_size}
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ and given.get(name, -1) == -1:
            problem = f"environment variable {name} expected, but not set"
            return ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: {problem}; {hint}"
            )
    return RuntimeError(f"no rank is running here: {hint}")


def _seconds(timeout: object) -> float:
    """The seconds of a timeout, 0 for None."""
    if timeout is None:
        return 0.0
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}"
        )
    if timeout <= timedelta():
        raise ValueError(f"Expected timeout argument to be positive, got {timeout!r}")
    return timeout.total_seconds()


def _ranks_counted(number: int) -> str:
    return "1 rank" if number == 1 else f"{number} ranks"


def _check_backend(backend: str | None) -> None:
    # PyTorch accepts names of backends in any case.
    if backend is not None and str(backend).lower() != BACKEND:
        raise ValueError(f"Invalid backend: {backend!r}{nearest(str(backend), [BACKEND])}")
